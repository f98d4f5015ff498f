#include "server/scheduling/batching/batch_pace.h"

#include <algorithm>

namespace sconce::server::scheduling {
namespace {

constexpr double kForget = 1.0 / 64;  // how fast the sums decay, per run
constexpr double kForgetAround =
    1.0 / 8;                 // faster, because the number of clients changes faster than the time of a run
constexpr double kRuns = 8;  // number of runs before any request waits

}  // namespace

void BatchPace::ran(size_t requests, int64_t rows, nanoseconds time, size_t waiting) noexcept {
  const double x = static_cast<double>(rows), y = static_cast<double>(time.count());
  const auto add = [](double& sum, double value) { sum += value - sum * kForget; };
  add(weight_, 1);
  add(rows_, x);
  add(time_, y);
  add(rows_rows_, x * x);
  add(rows_time_, x * y);
  around_ += (static_cast<double>(requests + waiting) - around_) * kForgetAround;
}

BatchPace::nanoseconds BatchPace::delay() const noexcept {
  if (weight_ < kRuns) return nanoseconds(0);
  const double spread = weight_ * rows_rows_ - rows_ * rows_;
  // Sizes that hardly differ do not show the cost of a row.
  if (spread <= 0.01 * rows_ * rows_) return nanoseconds(0);
  const double slope = std::max(0.0, (weight_ * rows_time_ - rows_ * time_) / spread);
  const double fixed = (time_ - slope * rows_) / weight_;
  if (fixed <= 0) return nanoseconds(0);
  return std::min(nanoseconds(static_cast<int64_t>(fixed / 2)), kLongest);
}

size_t BatchPace::enough() const noexcept { return std::max<size_t>(static_cast<size_t>(around_ / 2), 1); }

}  // namespace sconce::server::scheduling
