// OpenConnections: counts open connections by listener. Each connection holds a Slot. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <utility>

#include "server/http/router.h"

namespace sconce::server::http {

class OpenConnections {
 public:
  class Slot {
   public:
    Slot() = default;
    Slot(OpenConnections& all, Listeners listener) noexcept : count_(&all.of_[index(listener)]) {
      count_->fetch_add(1, std::memory_order_relaxed);
    }
    Slot(Slot&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
    Slot& operator=(Slot&& other) noexcept {
      std::swap(count_, other.count_);
      return *this;
    }
    ~Slot() { release(); }
    void release() noexcept {
      if (count_ != nullptr) std::exchange(count_, nullptr)->fetch_sub(1, std::memory_order_relaxed);
    }

   private:
    std::atomic<int64_t>* count_ = nullptr;
  };

  int64_t of(Listeners listener) const noexcept { return of_[index(listener)].load(std::memory_order_relaxed); }
  int64_t all() const noexcept {
    int64_t sum = 0;
    for (const auto& count : of_) sum += count.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  static size_t index(Listeners listener) noexcept {
    return static_cast<size_t>(std::countr_zero(static_cast<unsigned>(listener)));
  }
  std::array<std::atomic<int64_t>, 3> of_{};
};

}  // namespace sconce::server::http
