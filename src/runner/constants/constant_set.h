// ConstantTable: which constants a model has. ConstantSet: one complete set of their values.
//
// Both are immutable once made, and thread-safe. A set has a tensor for each stored constant (each container computes
// folded ones). All replicas on a device share the tensors, except those that the model writes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/model.h"
#include "sconce/mutex.h"
#include "sconce/package.h"
#include "sconce/tensor.h"
#include "src/loader/container.h"

namespace sconce::runner {

struct StoredConstant {
  ConstantSpec spec;
  Layout layout = Layout::kStrided;
  std::string_view public_name() const noexcept { return spec.fqn.empty() ? spec.name : spec.fqn; }
  // Whether a full update may omit it: buffers, tensor constants and empty parameters, as in AOTInductor.
  bool may_be_left_out() const noexcept;
};

class ConstantTable {
 public:
  // `packaged` has the archive's tensors in the container's order of stored constants; undefined if the package brings
  // none. `spec` adds what only the generated source says. `devices` (empty: all CPU) says where containers want the
  // constants, in the same order.
  ConstantTable(const std::vector<loader::ContainerConstant>& constants, const std::vector<Tensor>& packaged,
                const ModelSpec& spec, const std::vector<Device>& devices = {});

  const std::vector<StoredConstant>& stored() const noexcept { return stored_; }
  const std::vector<ConstantSpec>& all() const noexcept { return all_; }  // in the container's order
  // Stored constants by FQN (the compiler may make several of one tensor), else by their own name, else by another of
  // the tied names that the package records (tied_names.h); never empty. kNotFound; kInvalidArgument for a folded one.
  const std::vector<size_t>& indices(std::string_view name) const;
  bool has(std::string_view name) const noexcept;
  bool is_tied(size_t stored) const noexcept { return tied_[stored]; }  // whether it has other names
  bool any_mutated() const noexcept { return any_mutated_; }
  bool any_folded() const noexcept { return stored_.size() < all_.size(); }

 private:
  void add_tied_names(const ModelSpec& model);
  // Decides which of these, which no source describes, count as written.
  void assume_undescribed(const std::vector<size_t>& which, bool runs_write);

  std::vector<StoredConstant> stored_;
  std::vector<ConstantSpec> all_;
  std::map<std::string, std::vector<size_t>, std::less<>> by_fqn_, by_name_, by_tied_name_;
  std::vector<bool> tied_;
  bool any_mutated_ = false;
};

// A copy of a set's constant on the host, with the same strides.
Tensor on_host(const Tensor& tensor);

class ConstantSet {
 public:
  explicit ConstantSet(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}
  // In the order of table.stored(), on the device they were read to: the host or another. Undefined if not given.
  const std::vector<Tensor>& tensors() const noexcept { return tensors_; }
  // The set on a device. The first call copies it there in one piece of memory, unless tensors() are there already.
  // What it shares with `before` (null: none) is taken from there. kOutOfMemory, kDevice.
  const std::vector<Tensor>& on(Device device, const ConstantTable& table, const ConstantSet* before) const;
  // This set, which must be on the device already, with the device's values in place of the host's values for which
  // gone() is true. Null if there is nothing to replace.
  std::shared_ptr<const ConstantSet> without_host(Device device, const std::function<bool(const Tensor&)>& gone) const;
  // Packs weights now as runs over the other set have them packed, so that no run has to do it. kOutOfMemory.
  void derive_as(const ConstantSet& other) const;
  // The first constant without a value; empty if none.
  std::string_view missing(const ConstantTable& table) const noexcept;
  // Pieces of device memory that were taken for this set.
  const std::vector<StoragePtr>& blocks() const noexcept { return blocks_; }
  void keep_blocks(std::vector<StoragePtr> blocks) noexcept { blocks_ = std::move(blocks); }  // before others see it
  // Bytes of all storages, each counted once, except those that `but` has as well. Undefined tensors have none.
  uint64_t bytes(const ConstantSet* but = nullptr) const;
  // Its set_digest(), computed once.
  std::string digest(const ConstantTable& table) const;

 private:
  std::vector<Tensor> tensors_;
  std::vector<StoragePtr> blocks_;
  struct OnDevice {
    Device device;
    std::vector<Tensor> tensors;
  };
  mutable Mutex devices_mutex_;
  mutable std::vector<std::shared_ptr<const OnDevice>> devices_ SCONCE_GUARDED_BY(devices_mutex_);
  mutable Mutex digest_mutex_;
  mutable std::string digest_ SCONCE_GUARDED_BY(digest_mutex_);  // empty: not computed yet
};

}  // namespace sconce::runner
