// SequencePlaces: the places in which a model's sequences have their state, each on one replica.
//
// A place is a container of its own over the sequence's set of weights, with buffers of its own. So a replica goes from
// one sequence to the next by running another container: nothing is copied or exchanged, and CUDA graphs of a place
// stay true, since its addresses do. Places that a sequence left wait for the next one of their replica.
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
  explicit SequenceSlot(size_t index) : slot(index) {}

  const size_t slot;                          // of its replica
  std::atomic<bool> gone{false};              // its replica was removed
  size_t index = 0;                           // of SequencePlaces
  std::unique_ptr<ModelInstance> instance;    // null until the first step
  std::shared_ptr<const ConstantSet> values;  // of `instance`
  bool has_rows = false;                      // steps may set rows aside
  std::vector<Tensor> aside;                  // copies of the buffers, for such rows; empty until there is one
  bool begun = false;                         // the buffers are as the steps of `life` left them
  uint64_t life = 0;
  // Of the set with which it began, as in RunInfo.
  uint64_t generation = 0;
  std::shared_ptr<const std::string> label, set;
};

// Thread-safe.
class SequencePlaces {
 public:
  // bytes: of the buffers of one place. memory: of all; 0: no limit.
  SequencePlaces(const void* runner, size_t most, uint64_t memory, uint64_t bytes);
  ~SequencePlaces();
  SequencePlaces(const SequencePlaces&) = delete;
  SequencePlaces& operator=(const SequencePlaces&) = delete;

  uint64_t bytes() const noexcept { return bytes_; }
  // kQueueFull, kUnavailable. `owner` is kept by the sequence. rows: it may need its buffers' memory twice.
  std::shared_ptr<Sequence> take(const ReplicaSlots& slots, std::shared_ptr<const void> owner, bool rows);
  // Null if the sequence is another runner's.
  static SequenceSlot* place_of(const Sequence& sequence, const void* runner) noexcept;
  // The replica goes: frees what its places hold. Called by the holder of its slot, which is closed.
  void leave(size_t slot) noexcept;
  // Frees places that were waiting all the time since the last call; all: any that wait, and the weights they keep.
  void trim(bool all) noexcept;

 private:
  class Taken;
  void give(std::unique_ptr<SequenceSlot> place) noexcept;
  size_t choose(const ReplicaSlots& slots) SCONCE_REQUIRES(mutex_);

  const void* const runner_;
  const size_t most_, by_memory_;  // places; by_memory_: as memory allows, where each has its buffers once
  const uint64_t bytes_;
  mutable Mutex mutex_;
  std::vector<SequenceSlot*> taken_ SCONCE_GUARDED_BY(mutex_);                 // each knows its index
  size_t with_rows_ SCONCE_GUARDED_BY(mutex_) = 0;                             // of those taken
  std::vector<size_t> count_ SCONCE_GUARDED_BY(mutex_);                        // of those taken, by slot
  std::vector<std::unique_ptr<SequenceSlot>> free_ SCONCE_GUARDED_BY(mutex_);  // has room for all
  size_t least_free_ SCONCE_GUARDED_BY(mutex_) = 0;                            // since the last trim()
};

}  // namespace sconce::runner
