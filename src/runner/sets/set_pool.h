// SetPool: the tensors of a model's named sets, so that equal ones are held once and what all hold together is known.
//
// Tensors of the package and of the active set cost nothing more, and are compared with first. Others are found by a
// hash of their bytes, then compared byte for byte. Not thread-safe, except share().
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
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

  // The first constant that share() would take from the active set although it has another value and may be a weight,
  // because nothing says whether the model writes it; empty: there is none.
  std::string_view would_drop(const ConstantSet& set, const ConstantSet& active) const;

  void add(const ConstantSet& set) SCONCE_EXCLUDES(mutex_);
  void remove(const ConstantSet& set) noexcept SCONCE_EXCLUDES(mutex_);
  // Memory of constants, and of what kernels keep of them in an order of their own (Storage::derived_bytes).
  struct Amount {
    uint64_t plain = 0, packed = 0;
    uint64_t total() const noexcept { return plain + packed; }
    void add(const Storage& storage) noexcept {
      plain += storage.bytes();
      packed += storage.derived_bytes();
    }
  };
  // By how much adding the set would increase amount().
  Amount further(const ConstantSet& set, const ConstantSet& active) const SCONCE_EXCLUDES(mutex_);
  // What one set has that no other and not the active one has.
  Amount own(const ConstantSet& set, const ConstantSet& active) const SCONCE_EXCLUDES(mutex_);
  // What all sets have that is not shared with the active one.
  Amount amount(const ConstantSet& active) const SCONCE_EXCLUDES(mutex_);

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
