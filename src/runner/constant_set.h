// ConstantTable: what constants a model has. ConstantSet: one complete set of their values on one device.
//
// Both are immutable once made. A set holds a tensor per stored constant (folded ones are computed by each container);
// tensors are shared by every replica of the device, but for those that the model writes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/model.h"
#include "sconce/package.h"
#include "sconce/tensor.h"
#include "src/loader/container.h"

namespace sconce {

struct StoredConstant {
  ConstantSpec spec;
  Layout layout = Layout::kStrided;
  std::string_view public_name() const noexcept { return spec.fqn.empty() ? spec.name : spec.fqn; }
};

class ConstantTable {
 public:
  // `packaged` are the tensors of the archive in the container's order of stored constants; undefined where the package
  // brings none. `spec` adds what only the generated source tells.
  ConstantTable(const std::vector<loader::ContainerConstant>& constants, const std::vector<Tensor>& packaged,
                const ModelSpec& spec);

  const std::vector<StoredConstant>& stored() const noexcept { return stored_; }
  const std::vector<ConstantSpec>& all() const noexcept { return all_; }  // the container's order
  // Stored constants by FQN (the compiler may make several of one tensor), else by own name; never empty. kNotFound;
  // kInvalidArgument for a folded one.
  const std::vector<size_t>& indices(std::string_view name) const;
  bool any_mutated() const noexcept { return any_mutated_; }

 private:
  std::vector<StoredConstant> stored_;
  std::vector<ConstantSpec> all_;
  std::map<std::string, std::vector<size_t>, std::less<>> by_fqn_, by_name_;
  bool any_mutated_ = false;
};

class ConstantSet {
 public:
  explicit ConstantSet(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}
  const std::vector<Tensor>& tensors() const noexcept { return tensors_; }

  // This set with the named constants replaced. kNotFound, kInvalidArgument for dtype or shape; with `full`, also for
  // what is not named (buffers, tensor constants and empty parameters may be left out). Copies the values into storage
  // of their own unless user_managed, where strides must be the model's.
  std::shared_ptr<const ConstantSet> with(const ConstantTable& table, const ConstantMap& replacements, bool full,
                                          bool user_managed) const;
  // The first constant without a value; empty if none.
  std::string_view missing(const ConstantTable& table) const noexcept;

 private:
  std::vector<Tensor> tensors_;
};

}  // namespace sconce
