#include "src/runner/constants/constant_set.h"

#include <algorithm>

#include "package_format/wrapper/wrapper_mutation.h"
#include "sconce/check.h"
#include "src/runner/constants/set_digest.h"
#include "src/runner/constants/tied_names.h"
#include "src/support/excerpt.h"

namespace sconce::runner {
namespace {

void describe_packaged(ConstantSpec& spec, const Tensor& tensor) {
  spec.dtype = tensor.dtype();
  spec.shape.assign(tensor.sizes().begin(), tensor.sizes().end());
  spec.strides.assign(tensor.strides().begin(), tensor.strides().end());
  spec.offset = tensor.storage_offset();
  spec.opaque = tensor.layout() == Layout::kMkldnn;
  spec.device = tensor.device();
  if (spec.data_size == 0) spec.data_size = tensor.storage()->bytes();
}

}  // namespace

bool StoredConstant::may_be_left_out() const noexcept {
  if (spec.type == ConstantType::kBuffer || spec.type == ConstantType::kTensorConstant) return true;
  return std::find(spec.shape.begin(), spec.shape.end(), 0) != spec.shape.end();
}

ConstantTable::ConstantTable(const std::vector<loader::ContainerConstant>& constants,
                             const std::vector<Tensor>& packaged, const ModelSpec& model,
                             const std::vector<Device>& devices) {
  std::vector<Layout> layouts;
  std::vector<size_t> undescribed;
  size_t stored = 0;
  for (const loader::ContainerConstant& c : constants) {
    ConstantSpec& spec = all_.emplace_back();
    const auto from_source = std::find_if(model.constants.begin(), model.constants.end(),
                                          [&](const ConstantSpec& s) { return s.name == c.name; });
    if (from_source != model.constants.end())
      spec = *from_source;
    else
      undescribed.push_back(all_.size() - 1);
    spec.name = c.name;
    spec.fqn = c.fqn;
    spec.folded = c.folded;
    if (c.type >= 0 && c.type <= 4) spec.type = static_cast<ConstantType>(c.type);
    if (!spec.dtype) spec.dtype = dtype_from_number(c.dtype);
    if (c.data_size) spec.data_size = c.data_size;
    layouts.push_back(spec.opaque ? Layout::kMkldnn : Layout::kStrided);
    if (c.folded) continue;
    if (stored < packaged.size() && packaged[stored].defined()) {
      describe_packaged(spec, packaged[stored]);
      layouts.back() = packaged[stored].layout();
    }
    if (stored < devices.size()) spec.device = devices[stored];
    ++stored;
  }
  assume_undescribed(undescribed, model.may_write_constants);
  for (size_t i = 0; i < all_.size(); ++i) {
    const ConstantSpec& spec = all_[i];
    if (spec.folded) continue;
    any_mutated_ |= spec.mutated;
    by_name_[spec.name].push_back(stored_.size());
    if (!spec.fqn.empty()) by_fqn_[spec.fqn].push_back(stored_.size());
    stored_.push_back({spec, layouts[i]});
  }
  add_tied_names(model);
}

void ConstantTable::add_tied_names(const ModelSpec& model) {
  tied_.resize(stored_.size());
  for (const std::vector<std::string>& names : tied_names(model)) {
    std::vector<size_t> constants;
    for (const std::string& name : names)
      if (const auto at = by_fqn_.find(name); at != by_fqn_.end())
        constants.insert(constants.end(), at->second.begin(), at->second.end());
    if (constants.empty()) continue;  // the compiler wrote the tensor into the code, or the graph makes no use of it
    for (const size_t i : constants) tied_[i] = true;
    for (const std::string& name : names)
      if (!has(name)) by_tied_name_[name] = constants;
  }
}

void ConstantTable::assume_undescribed(const std::vector<size_t>& which, bool runs_write) {
  const auto any = [&](bool ConstantSpec::*is) {
    return std::any_of(all_.begin(), all_.end(), [&](const ConstantSpec& spec) { return spec.*is; });
  };
  // Code that folds constants may write others, wherever the compiler placed them: a buffer that is given a folded
  // value.
  if (!runs_write && !any(&ConstantSpec::folded)) return;
  std::vector<ConstantSpec*> specs;
  for (const size_t i : which) specs.push_back(&all_[i]);
  assume_mutated(specs, runs_write && !any(&ConstantSpec::mutated));
}

const std::vector<size_t>& ConstantTable::indices(std::string_view name) const {
  if (const auto it = by_fqn_.find(name); it != by_fqn_.end()) return it->second;
  if (const auto it = by_name_.find(name); it != by_name_.end()) return it->second;
  if (const auto it = by_tied_name_.find(name); it != by_tied_name_.end()) return it->second;
  for (const ConstantSpec& spec : all_)
    SCONCE_CHECK(spec.name != name && spec.fqn != name, kInvalidArgument, "constant '", name,
                 "' is folded: it is computed from others and cannot be given");
  SCONCE_FAIL(kNotFound, "the model has no constant '", excerpt(name), "'");
}

bool ConstantTable::has(std::string_view name) const noexcept {
  return by_fqn_.contains(name) || by_name_.contains(name) || by_tied_name_.contains(name) ||
         std::any_of(all_.begin(), all_.end(), [&](const ConstantSpec& c) { return c.name == name || c.fqn == name; });
}

void ConstantSet::derive_as(const ConstantSet& other) const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor &to = tensors_[i], &from = other.tensors_[i];
    if (!to.defined() || !from.defined() || !to.is_cpu() || !from.is_cpu() || to.storage() == from.storage()) continue;
    const auto same = [](IntSpan a, IntSpan b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); };
    // Derived values may cover all bytes of a storage, and an archive pads them.
    if (to.dtype() == from.dtype() && to.layout() == from.layout() && same(to.sizes(), from.sizes()) &&
        same(to.strides(), from.strides()) && to.storage_offset() == from.storage_offset() &&
        from.storage()->bytes() <= (to.storage()->bytes() + 63) / 64 * 64)
      to.storage()->derive_as(*from.storage());
  }
}

std::string_view ConstantSet::missing(const ConstantTable& table) const noexcept {
  for (size_t i = 0; i < tensors_.size(); ++i)
    if (!tensors_[i].defined()) return table.stored()[i].public_name();
  return {};
}

std::string ConstantSet::digest(const ConstantTable& table) const {
  const MutexLock lock(digest_mutex_);
  if (digest_.empty()) digest_ = set_digest(table, *this);
  return digest_;
}

uint64_t ConstantSet::bytes(const ConstantSet* but) const {
  const auto storages = [](const ConstantSet& set) {
    std::vector<const Storage*> result;
    for (const Tensor& tensor : set.tensors_)
      if (tensor.defined()) result.push_back(tensor.storage().get());
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  };
  const std::vector<const Storage*> others = but ? storages(*but) : std::vector<const Storage*>{};
  uint64_t bytes = 0;
  for (const Storage* storage : storages(*this))
    if (!std::binary_search(others.begin(), others.end(), storage)) bytes += storage->bytes();
  return bytes;
}

}  // namespace sconce::runner
