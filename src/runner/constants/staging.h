// Staging: fills a new constant set. Constants that are not named are shared with the set it starts from.
//
// Used by one thread at a time. Allocates only after every name, dtype and shape was found right.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sconce/weights.h"
#include "src/device/file_source.h"
#include "src/device/tensor_source.h"
#include "src/runner/constants/constant_set.h"
#include "src/runner/constants/weight_memory.h"

namespace sconce::runner {

class Staging {
 public:
  struct Rules {
    bool full = false, check_finite = false;
    std::vector<std::string> ignore = {};  // as in UpdateOptions
    bool keep = true;                      // false: values are checked and dropped
    // Values may go straight to this device; the host then has no copy of them. Empty: all come to the host.
    std::optional<Device> device = {};
    bool gradual = false;  // add() brings more entries; what is missing shows in check_complete()
  };
  // The table outlives the staging. The errors of WeightUpdate::declare(), except kOutOfMemory.
  Staging(const ConstantTable& table, std::span<const WeightEntry> entries, Rules rules);

  // More entries, if the rules say that it is gradual. After an error the staging cannot be used.
  void add(std::span<const WeightEntry> entries);
  // Which stored constants are named.
  const std::vector<bool>& named() const noexcept { return named_; }
  // Memory of the device that nobody else has: values that are copied on the device go there if it has their size.
  // It is freed when they come in another way, or need another piece.
  void reuse(std::vector<StoragePtr> blocks) noexcept { spare_ = std::move(blocks); }
  // Takes memory for the named constants that have none yet. kOutOfMemory.
  void allocate();
  // As in WeightUpdate.
  std::span<std::byte> memory(size_t entry);
  void complete(size_t entry);
  // As in FileTaker.
  bool takes(size_t entry) const;
  void take(std::span<const FilePart> parts, const std::function<void(uint64_t)>& tick);
  // As in TensorTaker.
  bool takes(size_t entry, const Tensor& values) const;
  void take(std::span<const TensorPart> parts);
  // The set, once all entries are complete. kFailedPrecondition.
  std::shared_ptr<const ConstantSet> finish(const ConstantSet& base);
  void check_complete() const;

 private:
  struct Target {  // one memory layout of an entry, and the stored constants that have it
    std::vector<size_t> constants;
    bool row_major = false;
    size_t offset = 0, bytes = 0;
    Tensor tensor;
  };
  struct Entry {
    WeightEntry declared;
    size_t bytes = 0;
    std::vector<Target> targets;  // empty if the entry is ignored, or twins have all its constants
    Tensor scratch;               // row-major, if no target is or nothing is kept; values for twins that are to come
    std::span<std::byte> handed_out;
    std::vector<MemoryPromise> promises;
    std::vector<size_t> twins;  // entries that name constants of this one by another of their tied names
    bool asked = false, complete = false, ignored = false;
    bool tied = false;  // a constant of it has other names
  };
  Entry& at(size_t entry, const char* what);
  bool is_ignored(std::string_view name) const noexcept;
  void check_known(std::span<const WeightEntry> entries) const;
  void ignore(Entry& entry) const;
  void add_targets(Entry& entry);
  void add_targets(Entry& entry, const std::string& name);
  // Whether the last entry's constant was named already: by itself, or by another entry that becomes its twin.
  // kInvalidArgument if that other entry has the same name or no tied one.
  bool is_named(size_t constant);
  // An entry is complete: compares its values with those of its twins, and keeps them only as long as needed.
  void compare_twins(size_t entry);
  void check_ignored() const;
  void check_named() const;
  void check_names() const;  // all of them, once they are there
  void scan(const Entry& entry, std::span<const std::byte> values) const;
  // A piece of the device's memory that the new set keeps. kOutOfMemory.
  StoragePtr device_memory(size_t bytes);

  const ConstantTable& table_;
  Rules rules_;
  std::vector<Entry> entries_;
  std::vector<bool> named_;
  std::vector<size_t> named_by_;            // the entry, of each named constant
  std::vector<StoragePtr> spare_, blocks_;  // of the device: to be used, and used
  MemoryPromise promise_;                   // for what comes to the host
  size_t placed_ = 0;                       // entries that have memory
  bool allocated_ = false;
};

}  // namespace sconce::runner
