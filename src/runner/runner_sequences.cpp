// Runner: steps of sequences.
#include <optional>
#include <utility>

#include "sconce/check.h"
#include "src/aoti_abi/guard.h"
#include "src/runner/runner.h"

namespace sconce::runner {

void Runner::open_places(const LoadOptions& options) {
  SCONCE_CHECK(options.sequences >= 0, kInvalidArgument, "sequences: ", options.sequences, " is negative");
  std::optional<int64_t> rows;
  for (const StoredConstant& constant : table_->stored()) {
    const ConstantSpec& spec = constant.spec;
    if (!spec.mutated || !spec.dtype) continue;
    const int64_t first = spec.shape.empty() || spec.opaque ? 0 : spec.shape.front();
    rows = rows.value_or(first) == first ? first : 0;
    sequence_bytes_ += spec.strides.size() == spec.shape.size()
                           ? storage_bytes_needed(spec.shape, spec.strides, 0, dtype_bytes(*spec.dtype))
                           : spec.data_size;
  }
  sequence_rows_ = rows.value_or(0);
  sequences_follow_ = options.sequences_follow;
  if (options.sequences > 0 && table_->any_mutated())
    places_ = std::make_unique<SequencePlaces>(this, static_cast<size_t>(options.sequences), options.sequences_memory,
                                               sequence_bytes_);
}

std::shared_ptr<Sequence> Runner::make_sequence(std::shared_ptr<const void> owner, bool rows) {
  SCONCE_CHECK(table_->any_mutated(), kFailedPrecondition,
               "the model writes no buffers, so a sequence of runs has no state");
  SCONCE_CHECK(places_, kFailedPrecondition, "the model has no places for sequences (setting sequences)");
  SCONCE_CHECK(!rows || sequence_rows_ > 0, kFailedPrecondition,
               "the buffers that the model writes do not have the same first dimension");
  return places_->take(slots_, std::move(owner), rows);
}

ReplicaSlot* Runner::slot_for(const SequenceStep& step, int replica, std::exception_ptr& error) const noexcept {
  auto index = static_cast<size_t>(replica);
  if (step.sequence) {
    const SequenceSlot* const place = SequencePlaces::place_of(*step.sequence, this);
    if (!place) {
      error = foreign_;
      return nullptr;
    }
    if (!place->gone.load()) {
      index = place->slot;
    } else {
      error = no_replica_;
      return nullptr;
    }
  }
  if (index < slots_.limit() && slots_[index].open.load()) return &slots_[index];
  error = no_replica_;
  return nullptr;
}

void Runner::close(ReplicaSlot& slot) noexcept {
  slots_.close(slot, [&] {
    if (places_) places_->leave(slot.index);
  });
}

void Runner::place_over(ReplicaSlot& slot, const Generation& active, std::shared_ptr<const ConstantSet> values,
                        bool anew, SequenceSlot& place) const {
  const bool fresh = !place.bound;
  if (fresh || place.values != values) {
    place.bound = slot.replica->bind(module_, *table_, *values, {}, place.bound.get(), active.set.get());
    place.values = std::move(values);
  }
  if (anew && !fresh) slot.replica->restore(*place.bound, *table_, *place.values, active.set.get());
}

void Runner::begin_sequence(ReplicaSlot& slot, const Generation& active, const WeightSet* weights,
                            SequenceSlot& place) const {
  const LoadedSet* const named = weights ? &own_set(*weights) : nullptr;
  SCONCE_CHECK(named || active.missing.empty(), kFailedPrecondition, "the package brings no weights and constant '",
               active.missing, "' has not been given");
  std::shared_ptr<const ConstantSet> values = named ? named->values : active.set;
  SCONCE_CHECK(!values->user_managed(), kFailedPrecondition,
               "the active set is the caller's memory, which a sequence cannot keep");
  place_over(slot, active, std::move(values), true, place);
  place.generation = named ? named->generation() : active.number.load(std::memory_order_relaxed);
  place.label = named ? named->name() : active.label;
  place.set = named ? named->name() : nullptr;
}

void Runner::move_rows(ReplicaSlot& slot, const Generation& active, SequenceSlot& place,
                       const SequenceRows& rows) const {
  SCONCE_CHECK(place.has_rows, kFailedPrecondition, "the sequence was made without room for rows");
  for (const std::span<const uint32_t> list : {rows.set_aside, rows.bring_back, rows.reset})
    for (const uint32_t row : list)
      SCONCE_CHECK(row < sequence_rows_, kInvalidArgument, "row ", row, " of a sequence, which has ", sequence_rows_);
  SCONCE_CHECK(rows.bring_back.empty() || !place.aside.empty(), kFailedPrecondition,
               "no row of the sequence was set aside");
  aoti_abi::in_memory("rows of a sequence that wait", [&] {
    if (!rows.set_aside.empty() && place.aside.empty())
      place.aside = slot.replica->copies_of(place.bound->buffers, *table_);
    slot.replica->move_rows(*place.bound, place.aside, *table_, *place.values, active.set.get(), rows);
  });
}

void Runner::run_step(ReplicaSlot& slot, const Generation& active, const WeightSet* weights, const SequenceStep& step,
                      std::span<const Tensor> inputs, std::span<Tensor> outputs, const Delivery& delivery,
                      RunInfo& info) {
  SequenceSlot* const place = SequencePlaces::place_of(*step.sequence, this);
  if (!place) std::rethrow_exception(foreign_);
  if (place->gone.load() || place->slot != slot.index) std::rethrow_exception(no_replica_);
  if (step.begins) {
    place->begun = false;
    aoti_abi::in_memory("the place of a sequence", [&] { begin_sequence(slot, active, weights, *place); });
    place->life = step.life;
  } else {
    SCONCE_CHECK(place->begun && place->life == step.life, kFailedPrecondition,
                 "the sequence has no state: its first step did not run, or a step failed; it must begin again");
    if (sequences_follow_ && !place->set && place->values != active.set && !active.set->user_managed()) {
      aoti_abi::in_memory("new weights for a sequence", [&] { place_over(slot, active, active.set, false, *place); });
      place->generation = active.number.load(std::memory_order_relaxed);
      place->label = active.label;
    }
  }
  // The model may fail in the middle of writing.
  place->begun = false;
  if (step.rows) move_rows(slot, active, *place, *step.rows);
  const uint64_t before = Storage::derivations();
  run_container(slot, *place->bound, true, inputs, outputs, delivery, info);
  place->begun = true;
  if (place->set && Storage::derivations() != before) [[unlikely]]
    packed_.store(true, std::memory_order_relaxed);
  info.generation = place->generation;
  info.label = place->label;
  info.set = place->set;
}

}  // namespace sconce::runner
