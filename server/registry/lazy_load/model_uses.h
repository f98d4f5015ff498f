// ModelUses: whether requests use a model that may be unloaded to make room, and when one last did. A request adds to a
// word of its own thread, and takes no lock.
//
// Unloading and requests cannot miss each other: a request counts itself before it looks whether the model is retired,
// and whoever retires the model says so before counting requests.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "sconce/mutex.h"

namespace sconce::server {

// Tells the loads that wait for room that a use of a model has ended. While none waits, the end of a use costs a look
// at a word that nobody writes. Thread-safe.
class RoomBell {
 public:
  // The next leave() rings, unless one has done so since. Ask for it before looking whether models are in use.
  void await() noexcept { awaited_.store(true); }
  bool awaited() const noexcept { return awaited_.load(); }
  void ring() noexcept {
    if (!awaited_.exchange(false)) return;
    const MutexLock lock(mutex_);
    if (hook_) hook_();
  }
  // hook: must not throw. When this returns, the earlier one is not called any more.
  void on_ring(std::function<void()> hook) noexcept {
    const MutexLock lock(mutex_);
    hook_.swap(hook);
  }

 private:
  std::atomic<bool> awaited_{false};
  Mutex mutex_;
  std::function<void()> hook_ SCONCE_GUARDED_BY(mutex_);
};

class ModelUses {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kPlaces = 8;

  // bell: rung at the end of uses; may be null.
  explicit ModelUses(Clock::time_point now, std::shared_ptr<RoomBell> bell = {}) noexcept : bell_(std::move(bell)) {
    places_[0].last.store(now.time_since_epoch().count());
  }

  // Returns false if the model is retired: then it is not used.
  bool enter(size_t place, Clock::time_point now) noexcept {
    Place& own = places_[place % kPlaces];
    own.count.fetch_add(1);
    if (retired_.load()) [[unlikely]] {
      own.count.fetch_sub(1);
      return false;
    }
    own.last.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    return true;
  }
  void leave(size_t place) noexcept {
    // A load that waits for room asks for the bell and then counts uses. Here it is the other way round, in one order
    // for all threads, so one of the two sees the other.
    places_[place % kPlaces].count.fetch_sub(1);
    if (bell_ && bell_->awaited()) [[unlikely]]
      bell_->ring();
  }

  // Nobody may begin to use it from now on. Returns false if somebody uses it; then nothing has changed. One thread at
  // a time.
  bool retire() noexcept {
    retired_.store(true);
    if (!in_use()) return true;
    retired_.store(false);
    return false;
  }
  void restore() noexcept { retired_.store(false); }

  bool in_use() const noexcept {
    int64_t count = 0;
    for (const Place& place : places_) count += place.count.load();
    return count != 0;
  }
  Clock::time_point last_use() const noexcept {
    int64_t last = 0;
    for (const Place& place : places_) last = std::max(last, place.last.load(std::memory_order_relaxed));
    return Clock::time_point(Clock::duration(last));
  }

 private:
  struct alignas(64) Place {
    std::atomic<int64_t> count{0}, last{0};
  };
  std::array<Place, kPlaces> places_{};
  std::atomic<bool> retired_{false};
  const std::shared_ptr<RoomBell> bell_;
};

}  // namespace sconce::server
