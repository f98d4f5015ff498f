// IdleWatch: lets one thread look now and then at what runs left behind, and sleep without a limit once there was
// nothing to look at. ran() is for any thread, the rest for the one that looks.
//
//   kBusy --end_period()--> kQuiet --end_period()--> kAsleep
//     ^                       |                        |
//     +-------- ran() --------+---- ran(), wakes ------+
#pragma once

#include <atomic>
#include <functional>
#include <utility>

namespace sconce::server {

class IdleWatch {
 public:
  // wake: called on a thread whose run ended, if the one that looks is asleep. It must not throw.
  explicit IdleWatch(std::function<void()> wake) : wake_(std::move(wake)) {}

  // A run ended. Reads one word, except for the first run of a period.
  void ran() noexcept {
    if (state_.load(std::memory_order_relaxed) != kBusy && state_.exchange(kBusy) == kAsleep) wake_();
  }
  // Call this after looking. Returns true if nothing ran since the last call: then sleep until !asleep(). A run that
  // ended just before the last call may have missed it, but not this one's look.
  bool end_period() noexcept {
    int quiet = kQuiet;
    if (state_.compare_exchange_strong(quiet, kAsleep)) return true;
    state_.store(kQuiet);
    return false;
  }
  bool asleep() const noexcept { return state_.load() == kAsleep; }

 private:
  static constexpr int kBusy = 0, kQuiet = 1, kAsleep = 2;
  std::atomic<int> state_{kBusy};
  const std::function<void()> wake_;
};

}  // namespace sconce::server
