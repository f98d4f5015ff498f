// GuardCounts: how requests fare with weights that were just published. The watch over a guarded commit decides by it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "server/weights/store/guard_bounds.h"
#include "server/weights/validation/answer_tap.h"

namespace sconce::server {

struct GuardTotals {
  uint64_t answers = 0, failures = 0;
  uint64_t with_nan = 0;
  std::chrono::microseconds p99{};  // at least so much, and less than 7 % more
};

// What the totals pass, as in "12 of 240 requests failed in the model, guard_errors is 0.01"; empty: nothing. A few
// requests say nothing about shares and times: see settings.def.
std::string passed_bound(const GuardBounds& bounds, const GuardTotals& totals);

// Counts answers of one generation. Allocates nothing and takes no lock.
class GuardCounts final : public AnswerWatcher {
 public:
  explicit GuardCounts(uint64_t generation) : generation_(generation) {}
  void saw(const SeenAnswer& answer) noexcept override;
  // failures: are counted elsewhere.
  GuardTotals totals(uint64_t failures) const noexcept;

 private:
  // Times in buckets: 16 for each doubling, of nanoseconds.
  static constexpr size_t kBuckets = 64 * 16;
  const uint64_t generation_;
  std::atomic<uint64_t> answers_{0}, with_nan_{0};
  std::array<std::atomic<uint32_t>, kBuckets> times_{};
};

}  // namespace sconce::server
