// RequestBudget: limits the bytes of all requests together: bodies as sent and decompressed, tensors made from them,
// and answers until their clients have read them. Outlives the storages that it counts. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace sconce::server {

class RequestBudget {
 public:
  explicit RequestBudget(uint64_t limit) noexcept : limit_(limit) {}
  RequestBudget(const RequestBudget&) = delete;

  // kTooLarge if `bytes` exceed the limit, kUnavailable if other requests use the memory now. what: names the taker in
  // errors.
  void take(uint64_t bytes, std::string_view what = "a request");
  // Takes bytes even beyond the limit, for a caller that returns as many soon.
  void overdraw(uint64_t bytes) noexcept { used_.fetch_add(bytes, std::memory_order_relaxed); }
  // While many connections are open, their small blocks count too. Small blocks may exceed the limit by a quarter, so
  // that large requests leave room for small ones.
  void count_small(bool on) noexcept { counts_small_.store(on, std::memory_order_relaxed); }
  bool counts_small() const noexcept { return counts_small_.load(std::memory_order_relaxed); }
  // Returns false if there is no room.
  bool take_small(uint64_t bytes) noexcept;
  // Likewise; throws kUnavailable.
  void require_small(uint64_t bytes) {
    if (!take_small(bytes)) refuse(bytes);
  }
  void give(uint64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  // Throws the errors of take(), and takes nothing.
  void check(uint64_t bytes, std::string_view what = "a request") const;

  uint64_t limit() const noexcept { return limit_; }
  uint64_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  // Whether memory that is cached for later requests should be released.
  bool is_tight() const noexcept { return used() > limit_ / 2; }

 private:
  [[noreturn]] static void refuse(uint64_t bytes);

  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
  std::atomic<bool> counts_small_{false};
};

// Bytes taken from a budget; the destructor returns them.
class BudgetShare {
 public:
  BudgetShare() = default;
  BudgetShare(const BudgetShare&) = delete;
  ~BudgetShare() { give_back(); }

  // Returns its bytes, then takes `bytes`. Throws the errors of RequestBudget::take().
  void take(RequestBudget& budget, uint64_t bytes, std::string_view what);
  // With RequestBudget::take_small(); returns false if there is no room.
  bool take_small(RequestBudget& budget, uint64_t bytes) noexcept;
  void give_back() noexcept;

 private:
  RequestBudget* budget_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace sconce::server
