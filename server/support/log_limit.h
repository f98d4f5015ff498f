// LogLimit: prevents log lines that clients can cause from filling the log. It admits a burst of lines, then a few per
// second; later lines report the number of dropped lines. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "sconce/mutex.h"

namespace sconce::server {

class LogLimit {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kBurst = 20;
  static constexpr std::chrono::milliseconds kEach{200};

  // Whether the line may be written now; `held` is the number of dropped lines since the last admitted one.
  bool admit(Clock::time_point now, uint64_t& held) noexcept {
    const MutexLock lock(mutex_);
    if (!take(now)) {
      ++held_;
      ++all_held_;
      return false;
    }
    held = std::exchange(held_, 0);
    return true;
  }
  // Number of unreported dropped lines, if they may be reported now; else 0.
  uint64_t take_held(Clock::time_point now) noexcept {
    const MutexLock lock(mutex_);
    return held_ != 0 && take(now) ? std::exchange(held_, 0) : 0;
  }
  // Whether there are unreported dropped lines.
  bool holds() const noexcept {
    const MutexLock lock(mutex_);
    return held_ != 0;
  }
  uint64_t all_held() const noexcept {
    const MutexLock lock(mutex_);
    return all_held_;
  }

 private:
  // A token bucket of kBurst lines that gains one line per kEach. full_at_: when it is full again.
  bool take(Clock::time_point now) noexcept SCONCE_REQUIRES(mutex_) {
    const Clock::time_point from = full_at_ > now ? full_at_ : now;
    if (from + kEach - now > kBurst * kEach) return false;
    full_at_ = from + kEach;
    return true;
  }

  mutable Mutex mutex_;
  Clock::time_point full_at_ SCONCE_GUARDED_BY(mutex_){};
  uint64_t held_ SCONCE_GUARDED_BY(mutex_) = 0, all_held_ SCONCE_GUARDED_BY(mutex_) = 0;
};

}  // namespace sconce::server
