#include "server/weights/validation/guard_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "server/weights/validation/nan_scan.h"

namespace sconce::server::weights {
namespace {

// Maximum bytes of one output that are scanned for NaN in one answer; this takes about 20 microseconds of the I/O
// thread.
constexpr size_t kMaxScanned = 512 << 10;

constexpr uint64_t kMinRequests = 20, kMinTimes = 100;

size_t time_bucket(std::chrono::nanoseconds time) noexcept {
  const auto ns = static_cast<uint64_t>(std::max<int64_t>(time.count(), 1));
  const auto power = static_cast<unsigned>(std::bit_width(ns)) - 1;
  const uint64_t fraction = power >= 4 ? ns >> (power - 4) : ns << (4 - power);  // 16 to 31
  return power * size_t{16} + (fraction - 16);
}

std::chrono::nanoseconds least_of(size_t bucket) noexcept {
  const size_t power = bucket / 16;
  const uint64_t fraction = bucket % 16 + 16;
  return std::chrono::nanoseconds(power >= 4 ? fraction << (power - 4) : fraction >> (4 - power));
}

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::string passed_bound(const GuardBounds& bounds, const GuardTotals& totals) {
  const uint64_t requests = totals.answers + totals.failures;
  const bool enough = requests >= kMinRequests;
  if ((enough || bounds.nan == 0) && share(totals.with_nan, totals.answers) > bounds.nan)
    return fmt::format("{} of {} answers have a NaN, guard_nan is {}", totals.with_nan, totals.answers, bounds.nan);
  if (enough && share(totals.failures, requests) > bounds.errors)
    return fmt::format("{} of {} requests failed in the model, guard_errors is {}", totals.failures, requests,
                       bounds.errors);
  if (bounds.p99.count() > 0 && totals.answers >= kMinTimes && totals.p99 > bounds.p99)
    return fmt::format("99 of 100 requests take up to {} us, guard_p99 is {} us", totals.p99.count(),
                       bounds.p99.count());
  return {};
}

void GuardCounts::saw(const SeenAnswer& answer) noexcept {
  if (answer.info.weight_version != weight_version_ || answer.info.set) return;
  const uint64_t number = answers_.fetch_add(1, std::memory_order_relaxed);
  times_[time_bucket(answer.total)].fetch_add(1, std::memory_order_relaxed);
  for (const Tensor& output : answer.outputs) {
    if (!output.defined()) continue;
    if (!has_nan(output, kMaxScanned, number * (kMaxScanned / output.itemsize()))) continue;
    with_nan_.fetch_add(1, std::memory_order_relaxed);
    break;
  }
}

GuardTotals GuardCounts::totals(uint64_t failures) const noexcept {
  GuardTotals totals{answers_.load(std::memory_order_relaxed), failures, with_nan_.load(std::memory_order_relaxed), {}};
  // Descends from the slowest requests to the 99th percentile.
  uint64_t slower = 0;
  const uint64_t most = totals.answers / 100;
  for (size_t i = kBuckets; i-- > 0;) {
    slower += times_[i].load(std::memory_order_relaxed);
    if (slower <= most) continue;
    totals.p99 = std::chrono::duration_cast<std::chrono::microseconds>(least_of(i));
    break;
  }
  return totals;
}

}  // namespace sconce::server::weights
