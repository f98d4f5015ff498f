// ReplicaSlots: the places for a model's replicas, and the choice of one for each request.
//
// A slot stays when its replica goes, and can take a later one. So requests choose among slots without a lock, and see
// on entering whether the slot is still open. Thread-safe, except that one thread at a time calls open() and close().
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "sconce/mutex.h"
#include "src/runner/replicas/replica.h"
#include "src/runner/replicas/replica_thread.h"
#include "src/runner/replicas/set_instances.h"
#include "src/runner/replicas/weight_version.h"

namespace sconce::runner {

struct alignas(64) ReplicaSlot {  // on its own cache lines, because whoever runs the replica writes them
  ReplicaSlot(size_t i, std::function<void(ReplicaSlot&, RunRequest&)> run)
      : index(i), thread([this, run](RunRequest& r) { run(*this, r); }, {}, "lane-" + std::to_string(i)) {}

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
  std::atomic<bool> failed{false};                    // its device is lost
  std::atomic<bool> busy{false};                      // held by one thread, which may run the replica
  std::atomic<const WeightVersion*> pinned{nullptr};  // the version that it runs
  std::unique_ptr<Replica> replica;                   // while open, and until the last holder has left
  std::unique_ptr<SetInstances> sets;                 // the holder's; null: it has run none yet
  ReplicaThread thread;
};

// Holds a slot for a scope.
class SlotLock {
 public:
  struct Adopt {};
  explicit SlotLock(ReplicaSlot& slot) noexcept : slot_(slot) { slot.acquire(); }
  SlotLock(ReplicaSlot& slot, Adopt) noexcept : slot_(slot) {}
  ~SlotLock() { slot_.release(); }
  SlotLock(const SlotLock&) = delete;
  SlotLock& operator=(const SlotLock&) = delete;

 private:
  ReplicaSlot& slot_;
};

class ReplicaSlots {
 public:
  // run: what a replica's thread does for a request.
  explicit ReplicaSlots(std::function<void(ReplicaSlot&, RunRequest&)> run);

  size_t limit() const noexcept { return limit_.load(std::memory_order_acquire); }  // slots, open or not
  ReplicaSlot& operator[](size_t index) const noexcept { return *slots_[index]; }
  size_t open_count() const noexcept;
  bool any_pinned() const noexcept;
  bool all_failed() const noexcept;  // of the open ones
  // The replicas in open slots. Waits for no run, no update and no slot that closes.
  std::vector<ReplicaInfo> describe() const;

  // The open slot with the fewest requests, or the key's slot; one with a lost device only if all have. Of those with
  // equally few, one whose replica has an instance of the named set (null: none is asked for). Null if none is open.
  ReplicaSlot* choose(uint64_t affinity, const LoadedSet* set = nullptr) const noexcept;
  // Takes an open slot that nobody holds and whose thread is not pinned; with a key, only the key's slot. Null if there
  // is none.
  ReplicaSlot* acquire_idle(uint64_t affinity) noexcept;
  // The same for one slot.
  ReplicaSlot* acquire_idle(ReplicaSlot& slot) noexcept { return acquire_open(slot) ? &slot : nullptr; }

  // The lowest closed slot. kTooLarge beyond kMaxReplicas.
  ReplicaSlot& vacant();
  // `cpus` have passed check_cores().
  void open(ReplicaSlot& slot, std::unique_ptr<Replica> replica, std::vector<int> cpus) noexcept;
  // Returns when the last request has left; the slot's replica is then gone. leaving: is called before that, when
  // nobody runs it any more.
  template <class F>
  void close(ReplicaSlot& slot, F&& leaving) noexcept {
    begin_closing(slot);
    // Threads that ran the replica themselves leave before the slot can be held; those that come now find it closed.
    const SlotLock lock(slot);
    leaving();
    end_closing(slot);
  }

 private:
  static bool acquire_open(ReplicaSlot& slot) noexcept;
  static void begin_closing(ReplicaSlot& slot) noexcept;
  void end_closing(ReplicaSlot& slot) noexcept;

  std::function<void(ReplicaSlot&, RunRequest&)> run_;
  std::unique_ptr<std::unique_ptr<ReplicaSlot>[]> slots_;  // kMaxReplicas
  mutable Mutex replicas_mutex_;                           // held for moments: which replica a slot has, and its cores
  std::atomic<size_t> limit_{0};
  std::atomic<uint32_t> next_{0};
};

}  // namespace sconce::runner
