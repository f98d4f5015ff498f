// BusyPoll: whether a thread that has nothing to do looks again at once, or sleeps until it is woken. Waking takes the
// kernel longer than a small request takes us: where requests have been coming faster than that, sleeping pays for
// nobody. Confined to a thread.
#pragma once

#include <algorithm>
#include <chrono>

namespace sconce::server {

class BusyPoll {
 public:
  using Clock = std::chrono::steady_clock;

  // limit: of looking in vain; 0: never.
  explicit BusyPoll(std::chrono::nanoseconds limit) noexcept : limit_(limit), interval_(kMiss * limit) {}

  // Something came.
  void came(Clock::time_point now) noexcept {
    add(now - last_);
    last_ = now;
  }
  // Whether things have been coming fast enough to look for the next one.
  bool pays() const noexcept { return interval_ < limit_; }
  // Nothing was there; of one that pays. False: enough.
  bool again(Clock::time_point now) noexcept {
    if (now - last_ < limit_) return true;
    add(kMiss * limit_);
    return false;
  }

 private:
  static constexpr int kMiss = 4;  // what a wait counts for at most, in limits

  void add(std::chrono::nanoseconds interval) noexcept {
    interval_ = (3 * interval_ + std::min(interval, kMiss * limit_)) / 4;
  }

  const std::chrono::nanoseconds limit_;
  std::chrono::nanoseconds interval_;  // moving average between two that came
  Clock::time_point last_{};
};

}  // namespace sconce::server
