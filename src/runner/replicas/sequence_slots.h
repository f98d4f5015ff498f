// SequenceSlots: the slots in which a model's sequences have their state, each on one replica.
//
// A slot has an instance of its own over the sequence's set of weights, with buffers of its own. So a replica goes from
// one sequence to the next by running another instance: nothing is copied or exchanged, and CUDA graphs of a slot stay
// valid, since its addresses do not change. A slot that a sequence left waits for the next sequence of its replica.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sconce/model.h"
#include "sconce/mutex.h"
#include "src/runner/constants/constant_set.h"
#include "src/runner/replicas/replica.h"
#include "src/runner/replicas/replica_slots.h"

namespace sconce::runner {

// Of the thread that holds the replica's slot, except what is const or atomic.
struct SequenceSlot {
  explicit SequenceSlot(size_t slot) : replica(slot) {}

  const size_t replica;                       // the slot of its replica
  std::atomic<bool> gone{false};              // its replica was removed
  size_t index = 0;                           // of SequenceSlots
  std::unique_ptr<ModelInstance> instance;    // null until the first step
  std::shared_ptr<const ConstantSet> values;  // of `instance`
  bool has_rows = false;                      // steps may set rows aside
  std::vector<Tensor> aside;                  // copies of the buffers, for such rows; empty until there is one
  bool begun = false;                         // the buffers are as the steps of `epoch` left them
  uint64_t epoch = 0;
  // Of the set with which it began, as in RunInfo.
  uint64_t weight_version = 0;
  std::shared_ptr<const std::string> label, set;
};

// Thread-safe.
class SequenceSlots {
 public:
  // bytes: of the buffers of one slot. memory: of all; 0: no limit.
  SequenceSlots(const void* runner, size_t most, uint64_t memory, uint64_t bytes);
  ~SequenceSlots();
  SequenceSlots(const SequenceSlots&) = delete;
  SequenceSlots& operator=(const SequenceSlots&) = delete;

  uint64_t bytes() const noexcept { return bytes_; }
  // kQueueFull, kUnavailable. `owner` is kept by the sequence. rows: it may need its buffers' memory twice.
  std::shared_ptr<Sequence> take(const ReplicaSlots& replicas, std::shared_ptr<const void> owner, bool rows);
  // Null if the sequence is another runner's.
  static SequenceSlot* slot_of(const Sequence& sequence, const void* runner) noexcept;
  // The replica goes: frees what its sequences hold. Called by the holder of its ReplicaSlot, which is closed.
  void leave(size_t replica) noexcept;
  // Frees slots that were waiting all the time since the last call; all: any that wait, and the weights they keep.
  void trim(bool all) noexcept;

 private:
  class Taken;
  void give(std::unique_ptr<SequenceSlot> slot) noexcept;
  size_t choose(const ReplicaSlots& replicas) SCONCE_REQUIRES(mutex_);

  const void* const runner_;
  const size_t most_, by_memory_;  // slots; by_memory_: as memory allows, where each has its buffers once
  const uint64_t bytes_;
  mutable Mutex mutex_;
  std::vector<SequenceSlot*> taken_ SCONCE_GUARDED_BY(mutex_);                 // each knows its index
  size_t with_rows_ SCONCE_GUARDED_BY(mutex_) = 0;                             // of those taken
  std::vector<size_t> count_ SCONCE_GUARDED_BY(mutex_);                        // of those taken, by replica
  std::vector<std::unique_ptr<SequenceSlot>> free_ SCONCE_GUARDED_BY(mutex_);  // has room for all
  size_t least_free_ SCONCE_GUARDED_BY(mutex_) = 0;                            // since the last trim()
};

}  // namespace sconce::runner
