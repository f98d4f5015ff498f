// ModelUses: whether requests use a model that may be evicted, and when it was last used. A request increments a
// counter of its own thread and takes no lock.
//
// Eviction and requests cannot miss each other: a request first counts itself and then checks whether the model is
// retired; the evicting thread first marks the model as retired and then counts requests.
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

namespace sconce::server::registry {

// RoomBell: notifies the loads that wait for memory when a use of a model has ended. While no load waits, the end of a
// use costs one read of an unmodified word. Thread-safe.
class RoomBell {
 public:
  // The next leave() rings, unless another one has rung since. Call this before checking whether models are in use.
  void await() noexcept { awaited_.store(true); }
  bool awaited() const noexcept { return awaited_.load(); }
  void ring() noexcept {
    if (!awaited_.exchange(false)) return;
    const MutexLock lock(mutex_);
    if (hook_) hook_();
  }
  // hook: must not throw. When this returns, the previous hook is no longer called.
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

  // Returns false if the model is retired; then the use does not count.
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
    // A load that waits for memory arms the bell and then counts uses. This function does the two steps in the opposite
    // order. All threads see one order, so at least one of the two sees the other.
    places_[place % kPlaces].count.fetch_sub(1);
    if (bell_ && bell_->awaited()) [[unlikely]]
      bell_->ring();
  }

  // Prevents new uses. Returns false if the model is in use; then nothing has changed. One thread at a time.
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

}  // namespace sconce::server::registry
