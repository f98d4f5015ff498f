// Pace: the deadline by which a client must have sent or read more bytes. It starts with a grace period. Each byte that
// moves extends the deadline by the time of one byte at the minimum rate, but never beyond the grace period. Announced
// bytes therefore do not count, and a client that was fast at first may not stall later.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace sconce::server {

struct Pace {
  using Time = std::chrono::steady_clock::time_point;

  std::chrono::nanoseconds grace{};
  uint64_t rate = 1;  // bytes per second

  // From settings.
  static Pace of(std::chrono::nanoseconds grace, int64_t rate) noexcept {
    return {grace, static_cast<uint64_t>(std::max<int64_t>(rate, 1))};
  }
  Time first(Time now) const noexcept { return now + grace; }
  // The new deadline; `deadline` is the previous one.
  Time next(Time deadline, Time now, uint64_t bytes) const noexcept {
    const double earned = 1e9 * static_cast<double>(bytes) / static_cast<double>(std::max<uint64_t>(rate, 1));
    const auto most = static_cast<double>(grace.count());
    return std::min(deadline + std::chrono::nanoseconds(static_cast<int64_t>(std::min(earned, most))), now + grace);
  }
};

}  // namespace sconce::server
