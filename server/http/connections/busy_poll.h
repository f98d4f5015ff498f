// BusyPoll: decides whether an idle thread looks for work again at once or sleeps. The kernel takes longer to wake a
// thread than we take for a small request, so sleeping does not pay while requests come faster than that. Used by one
// thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sconce::server {

class BusyPoll {
 public:
  using Clock = std::chrono::steady_clock;

  // limit: how long to look in vain; 0: never look.
  explicit BusyPoll(std::chrono::nanoseconds limit) noexcept : limit_(limit), interval_(kMiss * limit) {}

  // Call this when so many things came since the last call.
  void came(Clock::time_point now, size_t things = 1) noexcept {
    add((now - last_) / static_cast<int64_t>(things));
    last_ = now;
  }
  // Whether things come fast enough to look for the next one.
  bool pays() const noexcept { return interval_ < limit_; }
  // Call this when nothing was there, if pays(). Returns false once the limit is over.
  bool again(Clock::time_point now) noexcept {
    if (now - last_ < limit_) return true;
    add(kMiss * limit_);
    return false;
  }

 private:
  static constexpr int kMiss = 4;  // the most that one wait counts, in limits

  void add(std::chrono::nanoseconds interval) noexcept {
    interval_ = (3 * interval_ + std::min(interval, kMiss * limit_)) / 4;
  }

  const std::chrono::nanoseconds limit_;
  std::chrono::nanoseconds interval_;  // moving average of the time between two arrivals
  Clock::time_point last_{};
};

}  // namespace sconce::server
