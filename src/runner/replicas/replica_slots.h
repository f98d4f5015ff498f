// ReplicaSlots: where the replicas of a model sit, and which one a request goes to.
//
// A slot stays when its replica goes, and takes a later one: so requests choose among slots without a lock, and find
// out on entering whether the slot is still open. Thread-safe, but for open() and close(), which one thread calls at a
// time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "sconce/mutex.h"
#include "src/runner/replicas/generation.h"
#include "src/runner/replicas/lane.h"
#include "src/runner/replicas/replica.h"

namespace sconce::runner {

struct alignas(64) ReplicaSlot {  // each is written by whoever runs its replica
  ReplicaSlot(size_t i, std::function<void(ReplicaSlot&, RunRequest&)> run)
      : index(i), lane([this, run](RunRequest& r) { run(*this, r); }, {}, "lane-" + std::to_string(i)) {}

  bool try_acquire() noexcept { return !busy.exchange(true, std::memory_order_acquire); }
  void acquire() noexcept {
    while (!try_acquire()) busy.wait(true, std::memory_order_relaxed);
  }
  void release() noexcept {
    busy.store(false, std::memory_order_release);
    busy.notify_one();
  }

  const size_t index;
  std::atomic<bool> open{false};
  std::atomic<bool> failed{false};                 // its device is lost
  std::atomic<bool> busy{false};                   // held by one thread, which may run the replica
  std::atomic<const Generation*> pinned{nullptr};  // what it runs
  std::unique_ptr<Replica> replica;                // while open, and until the last holder has left
  Lane lane;
};

// Holds a slot for a scope.
class Held {
 public:
  struct Adopt {};
  explicit Held(ReplicaSlot& slot) noexcept : slot_(slot) { slot.acquire(); }
  Held(ReplicaSlot& slot, Adopt) noexcept : slot_(slot) {}
  ~Held() { slot_.release(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  ReplicaSlot& slot_;
};

class ReplicaSlots {
 public:
  // What a lane does for a request.
  explicit ReplicaSlots(std::function<void(ReplicaSlot&, RunRequest&)> run);

  size_t limit() const noexcept { return limit_.load(std::memory_order_acquire); }  // slots there are, open or not
  ReplicaSlot& operator[](size_t index) const noexcept { return *slots_[index]; }
  size_t open_count() const noexcept;
  bool any_pinned() const noexcept;
  bool all_failed() const noexcept;  // those that are open
  // What is at the open slots. Waits for no run, no update and no slot that closes.
  std::vector<ReplicaInfo> describe() const;

  // The open slot with the fewest requests, or that of the key; one that failed only if all have. Null if none is open.
  ReplicaSlot* choose(uint64_t affinity) const noexcept;
  // An open slot that nobody holds and whose lane is not pinned, now held; null if there is none. With a key, that of
  // the key or none.
  ReplicaSlot* acquire_idle(uint64_t affinity) noexcept;

  // A closed slot, the lowest there is. kTooLarge beyond kMaxReplicas.
  ReplicaSlot& vacant();
  // `cpus` have passed check_cores().
  void open(ReplicaSlot& slot, std::unique_ptr<Replica> replica, std::vector<int> cpus) noexcept;
  // Returns when the last request has left. The slot's replica is gone then.
  void close(ReplicaSlot& slot) noexcept;

 private:
  static bool acquire_open(ReplicaSlot& slot) noexcept;

  std::function<void(ReplicaSlot&, RunRequest&)> run_;
  std::unique_ptr<std::unique_ptr<ReplicaSlot>[]> slots_;  // kMaxReplicas
  mutable Mutex replicas_mutex_;                           // held for moments: which replica a slot has, and its cores
  std::atomic<size_t> limit_{0};
  std::atomic<uint32_t> next_{0};
};

}  // namespace sconce::runner
