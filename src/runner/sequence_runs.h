// SequenceRuns: steps of sequences, and the slots in which sequences have their state.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>

#include "sconce/model.h"
#include "src/runner/replicas/replica_pool.h"
#include "src/runner/replicas/sequence_slots.h"
#include "src/runner/replicas/weights_ref.h"

namespace sconce::runner {

class SequenceRuns {
 public:
  // `code` and `pool` outlive this. kInvalidArgument.
  SequenceRuns(const ModelCode& code, ReplicaPool& pool, const LoadOptions& options);

  // As Model::make_sequence(). `owner` owns the runner.
  std::shared_ptr<Sequence> make(std::shared_ptr<const void> owner, bool rows);
  uint64_t bytes() const noexcept { return bytes_; }
  int64_t rows() const noexcept { return rows_; }

  // The slot that must run the sequence's steps. Null: `error` says why there is none.
  ReplicaSlot* slot_of(const Sequence& sequence, std::exception_ptr& error) const noexcept;
  // Runs a step, by the slot's holder, who has pinned `active`. weights: those of `active` or of a named set, with
  // which the sequence begins if the step begins it.
  void run(ReplicaSlot& slot, const WeightVersion& active, const WeightsRef& weights, const SequenceStep& step,
           const RunCall& call) const;

  // The slot's replica goes: frees what its sequences hold. Called by the slot's holder.
  void leave(size_t slot) noexcept {
    if (slots_) slots_->leave(slot);
  }
  // Frees slots without a sequence: those that had none since the last call; all: any.
  void trim(bool all) noexcept {
    if (slots_) slots_->trim(all);
  }

 private:
  // The instance becomes one over these values. `reset`: its buffers get them, too.
  void set_values(ReplicaSlot& slot, const WeightVersion& active, std::shared_ptr<const ConstantSet> values, bool reset,
                  SequenceSlot& sequence) const;
  void begin(ReplicaSlot& slot, const WeightVersion& active, const WeightsRef& weights, SequenceSlot& sequence) const;
  void move_rows(ReplicaSlot& slot, const WeightVersion& active, SequenceSlot& sequence,
                 const SequenceRows& rows) const;

  // Made while there is memory, because submit() does not throw.
  const std::exception_ptr foreign_ =
      std::make_exception_ptr(Error(ErrorCode::kInvalidArgument, "the sequence is another model's"));
  const ModelCode& code_;
  ReplicaPool& pool_;
  const bool follow_;                     // LoadOptions::sequences_follow
  uint64_t bytes_ = 0;                    // of the buffers that the model writes
  int64_t rows_ = 0;                      // the first dimension that all of them have; 0: there is none
  std::unique_ptr<SequenceSlots> slots_;  // null: the model has no sequences
};

}  // namespace sconce::runner
