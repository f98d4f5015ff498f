// RequestBudget: the bytes that all requests together may hold: bodies as they came, decompressed, the tensors that are
// made of them, and answers until their clients have taken them. Outlives the storages that count in it. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace sconce::server {

class RequestBudget {
 public:
  explicit RequestBudget(uint64_t limit) noexcept : limit_(limit) {}
  RequestBudget(const RequestBudget&) = delete;

  // kTooLarge for what could never be had, kUnavailable for what others have now. what: for the error.
  void take(uint64_t bytes, std::string_view what = "a request");
  // Takes bytes even beyond the limit. For a caller that gives as many back in a moment.
  void overdraw(uint64_t bytes) noexcept { used_.fetch_add(bytes, std::memory_order_relaxed); }
  void give(uint64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  // The same errors if so much cannot be had now; takes nothing.
  void check(uint64_t bytes, std::string_view what = "a request") const;

  uint64_t limit() const noexcept { return limit_; }
  uint64_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  // Whoever keeps memory for later requests gives it back.
  bool is_tight() const noexcept { return used() > limit_ / 2; }

 private:
  [[noreturn]] static void refuse(uint64_t bytes);

  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

// Bytes of a budget that go back to it.
class BudgetShare {
 public:
  BudgetShare() = default;
  BudgetShare(const BudgetShare&) = delete;
  ~BudgetShare() { give_back(); }

  // Gives back what it has and takes these bytes. Throws as RequestBudget::take() does.
  void take(RequestBudget& budget, uint64_t bytes, std::string_view what);
  void give_back() noexcept;

 private:
  RequestBudget* budget_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace sconce::server
