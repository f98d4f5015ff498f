// Weights of a model that serves: sets, generations, and the two phases of an update.
//
// A model has one active constant set, at most one other set beside it (staged, or the previous one, kept for
// rollback), and numbers what it publishes: 1, 2, 3... A rollback publishes anew: it takes a number of its own. Walk of
// an update:
//
//   auto update = model.begin_update({.full = true, .label = "step-1200"});   // kBusy while another is under way
//   update->declare(entries);                       // every name, dtype and shape is checked; memory is taken
//   for (i...) { read(update->memory(i)); update->complete(i); }              // bytes go straight to their place
//   update->finish();                               // folded, containers ready: staged
//   model.commit_weights();                         // one pointer is exchanged; or abort_weights()
//
// Whatever fails before commit leaves the active set as it is, byte for byte. The previous set goes when declare() has
// accepted the names of the next one.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sconce/dtype.h"
#include "sconce/error.h"

namespace sconce {

struct UpdateOptions {
  // All constants must be named (buffers, tensor constants and empty parameters may be left out); else what is left out
  // comes from the active set, by reference.
  bool full = true;
  // Names that may be declared and are left out: their values are taken and forgotten. For what a state_dict() has and
  // the model has not, since the compiler wrote it into the code (docs/weights.md). Of a constant that the model has,
  // the value stays what it is; a full update still demands it.
  std::vector<std::string> ignore = {};
  std::string label = {};     // shown with answers in place of the generation; at most 256 bytes, printable
  bool check_finite = false;  // kInvalidArgument for the first NaN or infinity, naming constant and element
  bool dry_run = false;       // finish() checks everything that can be checked and stages nothing
  // Called in finish(), on its thread, for each replica: before its container is made and folded (false), and when it
  // is ready (true). Must not throw.
  std::function<void(int replica, bool ready)> progress = {};
};

// The values of one constant, row-major, little endian.
struct WeightEntry {
  std::string name;  // FQN; where a constant has none, its own name
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
};

// A set that is being filled. One thread at a time. Destroying it before finish() gives everything back.
class WeightUpdate {
 public:
  virtual ~WeightUpdate() = default;

  // Once, before the rest. kNotFound for a name, kInvalidArgument for dtype, shape, a name given twice or, with `full`,
  // one that is missing, and for a name in `ignore` that was not declared and is none of the model's. kUnsupported for
  // a constant that cannot be replaced (oneDNN-packed), kOutOfMemory.
  virtual void declare(std::span<const WeightEntry> entries) = 0;
  // Where the bytes of an entry go: its size exactly, 64-byte aligned, valid until complete() of it. The final place
  // wherever the model keeps the constant row-major; else one tensor's worth of scratch.
  virtual std::span<std::byte> memory(size_t entry) = 0;
  // All bytes of the entry are there: scans them if asked to, lays them out in the model's strides.
  virtual void complete(size_t entry) = 0;
  // Every entry is complete. Folds on every replica and makes the containers: the set is staged then, unless dry_run.
  // kFailedPrecondition if an entry is not complete; kModelFailed with the model's words; kOutOfMemory.
  virtual void finish() = 0;
};

enum class WeightState : int8_t { kActive, kStaged, kPrevious };

struct WeightSetInfo {
  WeightState state = WeightState::kActive;
  uint64_t generation = 0;  // 0: staged, not published yet
  std::string label;
  uint64_t bytes = 0;      // of all constants of the set
  uint64_t own_bytes = 0;  // of those that it does not share with the active set; of the active: all
  std::chrono::system_clock::time_point since;  // staged or published
};

}  // namespace sconce
