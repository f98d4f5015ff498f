// IdleWatch: lets one thread poll for leftovers of runs, and lets it sleep without a timeout once there was nothing to
// do. Any thread may call ran(); all other functions are for the polling thread.
//
//   kBusy --end_period()--> kQuiet --end_period()--> kAsleep
//     ^                       |                        |
//     +-------- ran() --------+---- ran(), wakes ------+
#pragma once

#include <atomic>
#include <functional>
#include <utility>

#include "sconce/mutex.h"

namespace sconce::server::scheduling {

class IdleWatch {
 public:
  // wake: called on the thread whose run ended, if the polling thread is asleep. It must not throw.
  explicit IdleWatch(std::function<void()> wake) : wake_(std::move(wake)) {}

  // A run ended. Reads one word, except for the first run of a period.
  void ran() noexcept {
    if (state_.load(std::memory_order_relaxed) != kBusy) begin_period();
  }
  // Call this after each poll. Returns true if no run ended since the last call: then sleep until !asleep(). The
  // previous poll may have missed a run that ended just before the last call; this poll has seen it.
  bool end_period() noexcept {
    int quiet = kQuiet;
    if (state_.compare_exchange_strong(quiet, kAsleep)) return true;
    state_.store(kQuiet);
    return false;
  }
  bool asleep() const noexcept { return state_.load() == kAsleep; }
  // Call this after the polling thread has ended. When it returns, no thread is within `wake`, and none calls it again.
  void stop() noexcept {
    const MutexLock lock(mutex_);
    state_.store(kBusy);
  }

 private:
  void begin_period() noexcept {
    const MutexLock lock(mutex_);
    if (state_.exchange(kBusy) == kAsleep) wake_();
  }

  static constexpr int kBusy = 0, kQuiet = 1, kAsleep = 2;
  std::atomic<int> state_{kBusy};
  Mutex mutex_;  // held while `wake` is called
  const std::function<void()> wake_;
};

}  // namespace sconce::server::scheduling
