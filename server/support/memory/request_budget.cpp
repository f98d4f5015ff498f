#include "server/support/memory/request_budget.h"

#include <algorithm>

#include "sconce/check.h"

namespace sconce::server {
void RequestBudget::check(uint64_t bytes, std::string_view what) const {
  SCONCE_CHECK(bytes <= limit_, kTooLarge, what, " of ", bytes,
               " bytes is larger than the memory of all requests (setting request_memory): ", limit_, " bytes");
  if (bytes > limit_ - std::min(used(), limit_)) refuse(bytes);
}

void RequestBudget::take(uint64_t bytes, std::string_view what) {
  uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_) return check(bytes, what);
    if (bytes > limit_ - std::min(used, limit_)) refuse(bytes);
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
}

bool RequestBudget::take_small(uint64_t bytes) noexcept {
  const uint64_t most = limit_ + limit_ / 4;
  uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > most - std::min(used, most)) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

void RequestBudget::refuse(uint64_t bytes) {
  SCONCE_FAIL(kUnavailable, "no room for ", bytes,
              " bytes among those of other requests (setting request_memory): try again later");
}

void BudgetShare::take(RequestBudget& budget, uint64_t bytes, std::string_view what) {
  give_back();
  budget.take(bytes, what);
  budget_ = &budget;
  bytes_ = bytes;
}

bool BudgetShare::take_small(RequestBudget& budget, uint64_t bytes) noexcept {
  give_back();
  if (!budget.take_small(bytes)) return false;
  budget_ = &budget;
  bytes_ = bytes;
  return true;
}

void BudgetShare::give_back() noexcept {
  if (budget_ != nullptr) budget_->give(bytes_);
  budget_ = nullptr;
}

}  // namespace sconce::server
