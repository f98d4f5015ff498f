#include "src/runner/sequence_runs.h"

#include <optional>
#include <utility>

#include "sconce/check.h"
#include "src/aoti_abi/guard.h"

namespace sconce::runner {

SequenceRuns::SequenceRuns(const ModelCode& code, ReplicaPool& pool, const LoadOptions& options)
    : code_(code), pool_(pool), follow_(options.sequences_follow) {
  SCONCE_CHECK(options.sequences >= 0, kInvalidArgument, "sequences: ", options.sequences, " is negative");
  std::optional<int64_t> rows;
  for (const StoredConstant& constant : code_.table->stored()) {
    const ConstantSpec& spec = constant.spec;
    if (!spec.mutated || !spec.dtype) continue;
    const int64_t first = spec.shape.empty() || spec.opaque ? 0 : spec.shape.front();
    rows = rows.value_or(first) == first ? first : 0;
    bytes_ += spec.strides.size() == spec.shape.size()
                  ? storage_bytes_needed(spec.shape, spec.strides, 0, dtype_bytes(*spec.dtype))
                  : spec.data_size;
  }
  rows_ = rows.value_or(0);
  if (options.sequences > 0 && code_.table->any_mutated())
    slots_ = std::make_unique<SequenceSlots>(&code_, static_cast<size_t>(options.sequences), options.sequences_memory,
                                             bytes_);
}

std::shared_ptr<Sequence> SequenceRuns::make(std::shared_ptr<const void> owner, bool rows) {
  SCONCE_CHECK(code_.table->any_mutated(), kFailedPrecondition,
               "the model writes no buffers, so a sequence of runs has no state");
  SCONCE_CHECK(slots_, kFailedPrecondition, "the model has no places for sequences (setting sequences)");
  SCONCE_CHECK(!rows || rows_ > 0, kFailedPrecondition,
               "the buffers that the model writes do not have the same first dimension");
  return slots_->take(pool_.slots(), std::move(owner), rows);
}

ReplicaSlot* SequenceRuns::slot_of(const Sequence& sequence, std::exception_ptr& error) const noexcept {
  const SequenceSlot* const own = SequenceSlots::slot_of(sequence, &code_);
  if (!own) {
    error = foreign_;
    return nullptr;
  }
  ReplicaSlot* const slot = own->gone.load() ? nullptr : pool_.open_slot(own->replica);
  if (!slot) error = pool_.removed();
  return slot;
}

void SequenceRuns::set_values(ReplicaSlot& slot, const WeightVersion& active, std::shared_ptr<const ConstantSet> values,
                              bool reset, SequenceSlot& sequence) const {
  const bool fresh = !sequence.instance;
  if (fresh || sequence.values != values) {
    sequence.instance = slot.replica->instantiate(code_.module, *code_.table, *values, {}, sequence.instance.get(),
                                                  active.values.get());
    sequence.values = std::move(values);
  }
  if (reset && !fresh) slot.replica->restore(*sequence.instance, *code_.table, *sequence.values, active.values.get());
}

void SequenceRuns::begin(ReplicaSlot& slot, const WeightVersion& active, const WeightsRef& weights,
                         SequenceSlot& sequence) const {
  weights.check(&code_);
  set_values(slot, active, weights.values(), true, sequence);
  sequence.weight_version = weights.number();
  sequence.label = weights.label();
  sequence.set = weights.set() ? weights.set()->name() : nullptr;
}

void SequenceRuns::move_rows(ReplicaSlot& slot, const WeightVersion& active, SequenceSlot& sequence,
                             const SequenceRows& rows) const {
  SCONCE_CHECK(sequence.has_rows, kFailedPrecondition, "the sequence was made without room for rows");
  for (const std::span<const uint32_t> list : {rows.set_aside, rows.bring_back, rows.reset})
    for (const uint32_t row : list)
      SCONCE_CHECK(row < rows_, kInvalidArgument, "row ", row, " of a sequence, which has ", rows_);
  SCONCE_CHECK(rows.bring_back.empty() || !sequence.aside.empty(), kFailedPrecondition,
               "no row of the sequence was set aside");
  aoti_abi::in_memory("rows of a sequence that wait", [&] {
    if (!rows.set_aside.empty() && sequence.aside.empty())
      sequence.aside = slot.replica->copies_of(sequence.instance->buffers, *code_.table);
    slot.replica->move_rows(*sequence.instance, sequence.aside, *code_.table, *sequence.values, active.values.get(),
                            rows);
  });
}

void SequenceRuns::run(ReplicaSlot& slot, const WeightVersion& active, const WeightsRef& weights,
                       const SequenceStep& step, const RunCall& call) const {
  SequenceSlot* const sequence = SequenceSlots::slot_of(*step.sequence, &code_);
  if (!sequence) std::rethrow_exception(foreign_);
  if (sequence->gone.load() || sequence->replica != slot.index) std::rethrow_exception(pool_.removed());
  if (step.begins) {
    sequence->begun = false;
    aoti_abi::in_memory("the place of a sequence", [&] { begin(slot, active, weights, *sequence); });
    sequence->epoch = step.epoch;
  } else {
    SCONCE_CHECK(sequence->begun && sequence->epoch == step.epoch, kFailedPrecondition,
                 "the sequence has no state: its first step did not run, or a step failed; it must begin again");
    if (follow_ && !sequence->set && sequence->values != active.values) {
      aoti_abi::in_memory("new weights for a sequence",
                          [&] { set_values(slot, active, active.values, false, *sequence); });
      sequence->weight_version = active.number.load(std::memory_order_relaxed);
      sequence->label = active.label;
    }
  }
  // The model may fail in the middle of writing.
  sequence->begun = false;
  if (step.rows) move_rows(slot, active, *sequence, *step.rows);
  pool_.run(slot, *sequence->instance, true, call);
  sequence->begun = true;
  call.info.weight_version = sequence->weight_version;
  call.info.label = sequence->label;
  call.info.set = sequence->set;
}

}  // namespace sconce::runner
