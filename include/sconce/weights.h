// Weights of a serving model: sets, weight versions, and the two phases of an update.
//
// A model has one active constant set and at most one other: a staged set, or the previous one, which is kept for
// rollback. Published sets are numbered 1, 2, 3...; a rollback takes a new number. A process that restores a set of an
// earlier process passes the set's old number to commit_weights(). The steps of an update:
//
//   auto update = model.begin_update({.full = true, .label = "step-1200"});   // kBusy while another is under way
//   update->declare(entries);                       // every name, dtype and shape is checked; memory is allocated
//   for (i...) { read(update->memory(i)); update->complete(i); }              // bytes go directly to their final place
//   update->finish();                               // folded, model instances ready: staged
//   model.commit_weights();                         // one pointer is exchanged; or abort_weights()
//
// If a step before commit fails, the active set stays as it is, byte for byte. The previous set is freed once declare()
// has accepted the names of the next one.
//
// A model may also hold named sets (LoadOptions::sets), which requests choose by name. An update with
// UpdateOptions::set makes one; it needs a commit only with UpdateOptions::hold.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sconce/dtype.h"
#include "sconce/error.h"

namespace sconce {

struct UpdateOptions {
  // Requires all constants, except buffers, tensor constants and empty parameters. Constants that are not named share
  // the active set's values.
  bool full = true;
  // Names that may be declared but are not used: their values are read and dropped. For entries of a state_dict() that
  // the compiler wrote into the code, so that the model has no such constant (docs/weights.md). A constant that the
  // model has keeps its value; a full update still requires it.
  std::vector<std::string> ignore = {};
  // Fills a named set instead of the next active one. Once finish() returns, requests for this name use the new set. 1
  // to 64 of A-Z a-z 0-9 . _ - and no dot at the start; "active" is the active set's.
  std::string set = {};
  // The named set that a partial update of a named set starts from. Empty: the active set.
  std::string base = {};
  // Keeps the named set pending until Model::commit_set() or Model::abort_set(); until then, requests use the previous
  // set of that name.
  bool hold = false;
  std::string note = {};      // stored with a named set, in its file too, and listed by named_sets(); at most 64 KiB
  std::string label = {};     // shown with results in place of the weight version; at most 256 printable bytes
  bool check_finite = false;  // kInvalidArgument names the first NaN or infinity: constant and element
  bool dry_run = false;       // finish() does all possible checks and stages nothing
  // Allows several calls of declare(), for values that arrive in parts with names unknown in advance. finish() reports
  // the missing constants of a `full` update.
  bool gradual = false;
  // Called in finish(), on its thread, twice for each replica: before its model instance is made and folded (false),
  // and when it is ready (true). Must not throw.
  std::function<void(int replica, bool ready)> progress = {};
};

// The values of one constant, row-major, little endian.
struct WeightEntry {
  std::string name;  // FQN, or the constant's own name if it has none
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  // Other names of this tensor, according to its source: the names that safetensors.torch.save_model() left out of the
  // file. Names that the model does not have are ignored.
  std::vector<std::string> tied = {};
};

// A set being filled, by one thread at a time. Destruction before finish() frees everything.
class WeightUpdate {
 public:
  virtual ~WeightUpdate() = default;

  // Call this once, first. In a gradual update each call adds entries, numbered on from the last one; after an error
  // the update cannot be used. kNotFound for an unknown name; kInvalidArgument for a wrong dtype or shape, a name
  // given twice, a missing name with `full`, and a name in `ignore` that is neither declared nor the model's;
  // kUnsupported for a constant that cannot be replaced (oneDNN-packed); kOutOfMemory. Entries may name one constant
  // by several of its tied names: complete() then compares their bytes. If they differ, it throws kInvalidArgument
  // with both names.
  virtual void declare(std::span<const WeightEntry> entries) = 0;
  // The buffer for the bytes of an entry: exactly its size, 64-byte aligned, valid until complete() is called for it.
  // If the model keeps the constant row-major, this is its final memory, else scratch memory for one tensor.
  virtual std::span<std::byte> memory(size_t entry) = 0;
  // Ends an entry whose bytes are complete: checks for NaN and infinity if requested, and applies the model's strides.
  virtual void complete(size_t entry) = 0;
  // Replaces UpdateOptions::label, before finish(). kInvalidArgument.
  virtual void set_label(std::string label) = 0;
  // Call this when every entry is complete. Makes and folds a model instance for every replica; the set is then
  // staged, unless dry_run. kFailedPrecondition if an entry is not complete; kModelFailed with the model's message;
  // kOutOfMemory.
  virtual void finish() = 0;
};

// A named set in memory. It stays there while it is referenced, even if another set gets its name or it is evicted to
// disk. Immutable, except replicas().
class WeightSet {
 public:
  WeightSet(const WeightSet&) = delete;
  WeightSet& operator=(const WeightSet&) = delete;
  const std::shared_ptr<const std::string>& name() const noexcept { return name_; }
  uint64_t weight_version() const noexcept { return weight_version_; }
  // Replicas that can run it at once. Others first make a model instance.
  int replicas() const noexcept { return replicas_.load(std::memory_order_relaxed); }

 protected:
  WeightSet(std::string name, uint64_t weight_version)
      : name_(std::make_shared<const std::string>(std::move(name))), weight_version_(weight_version) {}
  ~WeightSet() = default;
  mutable std::atomic<int> replicas_{0};

 private:
  const std::shared_ptr<const std::string> name_;
  const uint64_t weight_version_;
};

struct NamedSetInfo {
  std::string name, label, note;
  uint64_t weight_version = 0;
  bool on_disk = false;  // else in memory
  uint64_t bytes = 0;    // of all constants of the set
  uint64_t own_bytes =
      0;  // constants that neither the active nor another named set in memory has; on disk: those in the file
  // Memory of this set's constants that kernels keep in packed order, in addition to `bytes`; 0 for a set on disk.
  uint64_t packed_bytes = 0;
  int replicas = 0;                                   // as WeightSet::replicas()
  std::chrono::system_clock::time_point since, used;  // when it was made; when it was last requested
};

// Memory of all named sets of a model.
struct NamedSetsMemory {
  uint64_t bytes = 0;  // beyond the active set, including packed_bytes and sets that are pending or may be restored
  uint64_t packed_bytes = 0;  // copies of these constants that kernels keep in packed order
  uint64_t limit = 0;         // LoadOptions::sets_memory
  int in_memory = 0, on_disk = 0;
};

enum class WeightState : int8_t { kActive, kStaged, kPrevious };

struct WeightSetInfo {
  WeightState state = WeightState::kActive;
  uint64_t weight_version = 0;  // 0: staged, not published yet
  std::string label;
  uint64_t bytes = 0;                           // of all constants of the set
  uint64_t own_bytes = 0;                       // not shared with the active set; for the active set: all
  std::chrono::system_clock::time_point since;  // when it was staged or published
  std::string missing;  // the first constant without a value, for a package without weights; empty: none
};

}  // namespace sconce
