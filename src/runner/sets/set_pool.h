// SetPool: the tensors of a model's named sets, so that equal ones are held once and what all hold together is known.
//
// Tensors of the package and of the active set cost nothing more, and are compared with first. Others are found by a
// hash of their bytes, then compared byte for byte. Not thread-safe, except share().
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sconce/mutex.h"
#include "src/runner/constants/constant_set.h"

namespace sconce::runner {

class SetPool {
 public:
  // packaged: stays the model's base, whatever becomes active.
  SetPool(const ConstantTable& table, std::shared_ptr<const ConstantSet> packaged)
      : table_(table), packaged_(std::move(packaged)) {}

  // The set with each constant that another has as well taken from there. Looks at the bytes, so call it without locks
  // and for a new set only.
  std::shared_ptr<const ConstantSet> share(const ConstantSet& set, const ConstantSet& active) const
      SCONCE_EXCLUDES(mutex_);

  void add(const ConstantSet& set) SCONCE_EXCLUDES(mutex_);
  void remove(const ConstantSet& set) noexcept SCONCE_EXCLUDES(mutex_);
  // By how much adding the set would increase bytes().
  uint64_t further_bytes(const ConstantSet& set, const ConstantSet& active) const SCONCE_EXCLUDES(mutex_);
  // Bytes of one set that no other and not the active one has.
  uint64_t own_bytes(const ConstantSet& set, const ConstantSet& active) const SCONCE_EXCLUDES(mutex_);
  // Bytes of all sets that are not shared with the active one.
  uint64_t bytes(const ConstantSet& active) const SCONCE_EXCLUDES(mutex_);

  const ConstantSet& packaged() const noexcept { return *packaged_; }

 private:
  struct Entry {
    Tensor tensor;
    uint64_t hash = 0;
    size_t sets = 0;
  };
  bool is_packaged(const Tensor& tensor, size_t constant) const noexcept;
  // Calls visit(storage, constant) for each storage that the pool counts for a set, once.
  template <class F>
  void for_each_counted(const ConstantSet& set, F&& visit) const;
  void release(const Storage* storage) noexcept SCONCE_REQUIRES(mutex_);

  const ConstantTable& table_;
  const std::shared_ptr<const ConstantSet> packaged_;
  mutable Mutex mutex_;
  std::unordered_map<const Storage*, Entry> entries_ SCONCE_GUARDED_BY(mutex_);
  std::unordered_multimap<uint64_t, const Storage*> by_hash_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::runner
