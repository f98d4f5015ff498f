#include "src/runner/constant_set.h"

#include <algorithm>

#include "sconce/check.h"
#include "src/ops/copy.h"

namespace sconce {
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

bool may_be_left_out(const ConstantSpec& spec) {
  if (spec.type == ConstantType::kBuffer || spec.type == ConstantType::kTensorConstant) return true;
  return std::find(spec.shape.begin(), spec.shape.end(), 0) != spec.shape.end();
}

}  // namespace

ConstantTable::ConstantTable(const std::vector<loader::ContainerConstant>& constants,
                             const std::vector<Tensor>& packaged, const ModelSpec& model) {
  for (size_t i = 0; i < constants.size(); ++i) {
    const loader::ContainerConstant& c = constants[i];
    ConstantSpec spec;
    const auto from_source = std::find_if(model.constants.begin(), model.constants.end(),
                                          [&](const ConstantSpec& s) { return s.name == c.name; });
    if (from_source != model.constants.end()) spec = *from_source;
    spec.name = c.name;
    spec.fqn = c.fqn;
    spec.folded = c.folded;
    if (c.type >= 0 && c.type <= 4) spec.type = static_cast<ConstantType>(c.type);
    if (!spec.dtype) spec.dtype = dtype_from_number(c.dtype);
    if (c.data_size) spec.data_size = c.data_size;
    Layout layout = spec.opaque ? Layout::kMkldnn : Layout::kStrided;
    if (!c.folded) {
      if (stored_.size() < packaged.size() && packaged[stored_.size()].defined()) {
        describe_packaged(spec, packaged[stored_.size()]);
        layout = packaged[stored_.size()].layout();
      }
      any_mutated_ |= spec.mutated;
      by_name_[spec.name].push_back(stored_.size());
      if (!spec.fqn.empty()) by_fqn_[spec.fqn].push_back(stored_.size());
      stored_.push_back({spec, layout});
    }
    all_.push_back(std::move(spec));
  }
}

const std::vector<size_t>& ConstantTable::indices(std::string_view name) const {
  if (const auto it = by_fqn_.find(name); it != by_fqn_.end()) return it->second;
  if (const auto it = by_name_.find(name); it != by_name_.end()) return it->second;
  for (const ConstantSpec& spec : all_)
    SCONCE_CHECK(spec.name != name && spec.fqn != name, kInvalidArgument, "constant '", name,
                 "' is folded: it is computed from others and cannot be given");
  SCONCE_FAIL(kNotFound, "the model has no constant '", name, "'");
}

std::shared_ptr<const ConstantSet> ConstantSet::with(const ConstantTable& table, const ConstantMap& replacements,
                                                     bool full, bool user_managed) const {
  std::vector<Tensor> tensors = tensors_;
  std::vector<bool> named(tensors.size());
  // All names, dtypes and shapes before a byte moves.
  const auto check = [&](const std::string& name, const Tensor& tensor, size_t i) {
    const ConstantSpec& spec = table.stored()[i].spec;
    SCONCE_CHECK(tensor.defined(), kInvalidArgument, "constant '", name, "': the tensor is undefined");
    SCONCE_CHECK(!spec.opaque && tensor.layout() == Layout::kStrided, kUnsupported, "constant '", name,
                 "' is packed by the compiler (oneDNN) and cannot be replaced");
    SCONCE_CHECK(!spec.dtype || tensor.dtype() == *spec.dtype, kInvalidArgument, "constant '", name, "': expected ",
                 dtype_name(*spec.dtype), ", got ", dtype_name(tensor.dtype()));
    SCONCE_CHECK(std::equal(tensor.sizes().begin(), tensor.sizes().end(), spec.shape.begin(), spec.shape.end()),
                 kInvalidArgument, "constant '", name, "': expected shape ", to_string(IntSpan(spec.shape)), ", got ",
                 to_string(tensor.sizes()));
    SCONCE_CHECK(
        !user_managed ||
            std::equal(tensor.strides().begin(), tensor.strides().end(), spec.strides.begin(), spec.strides.end()) ||
            tensor.numel() == 0,
        kInvalidArgument, "constant '", name, "': expected strides ", to_string(IntSpan(spec.strides)), ", got ",
        to_string(tensor.strides()));
    named[i] = true;
  };
  for (const auto& [name, tensor] : replacements)
    for (const size_t i : table.indices(name)) check(name, tensor, i);
  if (full)
    for (size_t i = 0; i < named.size(); ++i)
      SCONCE_CHECK(named[i] || may_be_left_out(table.stored()[i].spec), kInvalidArgument,
                   "a full update must name constant '", table.stored()[i].public_name(), "'");
  for (const auto& [name, tensor] : replacements)
    for (const size_t i : table.indices(name)) {
      if (user_managed) {
        tensors[i] = tensor;
        continue;
      }
      const ConstantSpec& spec = table.stored()[i].spec;
      Tensor copied = Tensor::empty_strided(spec.shape, spec.strides, tensor.dtype(), tensor.device());
      copy(tensor, copied);
      copied.storage()->set_immutable(true);
      tensors[i] = std::move(copied);
    }
  return std::make_shared<ConstantSet>(std::move(tensors));
}

std::string_view ConstantSet::missing(const ConstantTable& table) const noexcept {
  for (size_t i = 0; i < tensors_.size(); ++i)
    if (!tensors_[i].defined()) return table.stored()[i].public_name();
  return {};
}

}  // namespace sconce
