// Sequences: runs that continue one another, each sequence with a copy of its own of the buffers that the model writes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sconce {

// A place for the state of one sequence, on one replica: the buffers that the model writes, as the sequence's runs left
// them. Made by Model::make_sequence(), keeps the model alive, and frees its place when it is destroyed; no run may
// have it then. A sequence keeps the set of weights with which it began (LoadOptions::sequences_follow), also in
// memory.
class Sequence {
 public:
  virtual ~Sequence() = default;
  // The replica that runs its steps; a number that a later replica may get again.
  virtual size_t replica() const noexcept = 0;
};

// Makes a run a step of a sequence. Steps that are submitted one after the other run in this order.
struct SequenceStep {
  Sequence* sequence = nullptr;  // the caller keeps it; null: the run uses the replica's own buffers
  // The buffers first get their initial values, and the sequence the set of weights that the run asks for.
  bool begins = false;
  // Which beginning the step continues: a number of the caller's, the same in the step that began. kFailedPrecondition
  // if the sequence's state is of another one, or if there is none because a step failed while the model ran.
  uint64_t life = 0;
};

}  // namespace sconce
