// GuardCounts: counts the results of requests on newly published weights. The guard of a publication decides by these
// counts.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "server/weights/store/guard_bounds.h"
#include "server/weights/validation/answer_tap.h"

namespace sconce::server::weights {

struct GuardTotals {
  uint64_t answers = 0, failures = 0;
  uint64_t with_nan = 0;
  std::chrono::microseconds p99{};  // lower bound; the true value is less than 7 % higher
};

// The exceeded bound, as in "12 of 240 requests failed in the model, guard_errors is 0.01"; empty: none. Shares and
// times of only a few requests are ignored: see settings.def.
std::string passed_bound(const GuardBounds& bounds, const GuardTotals& totals);

// Counts the answers of one weight version. Allocates nothing and takes no lock.
class GuardCounts final : public AnswerWatcher {
 public:
  explicit GuardCounts(uint64_t weight_version) : weight_version_(weight_version) {}
  void saw(const SeenAnswer& answer) noexcept override;
  // failures: counted elsewhere.
  GuardTotals totals(uint64_t failures) const noexcept;

 private:
  // A histogram of times in nanoseconds, with 16 buckets per power of two.
  static constexpr size_t kBuckets = 64 * 16;
  const uint64_t weight_version_;
  std::atomic<uint64_t> answers_{0}, with_nan_{0};
  std::array<std::atomic<uint32_t>, kBuckets> times_{};
};

}  // namespace sconce::server::weights
