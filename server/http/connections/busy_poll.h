// BusyPoll: decides whether an idle thread polls for work again or sleeps. Waking a thread takes the kernel longer than
// a small request takes the server, so sleeping does not pay while requests arrive faster than that. Used by one
// thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sconce::server::http {

class BusyPoll {
 public:
  using Clock = std::chrono::steady_clock;

  // limit: how long to poll without success; 0: never poll.
  explicit BusyPoll(std::chrono::nanoseconds limit) noexcept : limit_(limit), interval_(kMiss * limit) {}

  // Call this when `things` things have arrived since the last call.
  void came(Clock::time_point now, size_t things = 1) noexcept {
    add((now - last_) / static_cast<int64_t>(things));
    last_ = now;
  }
  // Whether things arrive fast enough to poll for the next one.
  bool pays() const noexcept { return interval_ < limit_; }
  // Call this when a poll found nothing, if pays(). Returns false once the limit has passed.
  bool again(Clock::time_point now) noexcept {
    if (now - last_ < limit_) return true;
    add(kMiss * limit_);
    return false;
  }

 private:
  static constexpr int kMiss = 4;  // maximum that one wait counts, in multiples of the limit

  void add(std::chrono::nanoseconds interval) noexcept {
    interval_ = (3 * interval_ + std::min(interval, kMiss * limit_)) / 4;
  }

  const std::chrono::nanoseconds limit_;
  std::chrono::nanoseconds interval_;  // moving average of the time between two arrivals
  Clock::time_point last_{};
};

}  // namespace sconce::server::http
