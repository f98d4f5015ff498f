#include "src/c_api/signature.h"

#include <utility>

#include "src/c_api/boundary.h"
#include "src/c_api/tensors.h"

namespace sconce::c_api {

static_assert(static_cast<int>(SCONCE_FOLDED) == static_cast<int>(ConstantType::kFolded) &&
              static_cast<int>(SCONCE_TENSOR_CONSTANT) == static_cast<int>(ConstantType::kTensorConstant));

std::vector<Signature::Shown> Signature::show(const std::vector<TensorSpec>& tensors) {
  std::vector<Shown> all(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorSpec& spec = tensors[i];
    Shown& shown = all[i];
    if (spec.device) shown.device = to_string(*spec.device);
    for (const Dim& dim : spec.dims) shown.dims.push_back({dim.min, dim.max, dim.symbol.c_str()});
    for (const auto& stride : spec.strides) shown.strides.push_back(stride.value_or(SCONCE_UNKNOWN_STRIDE));
    sconce_tensor_info& info = shown.info;
    info.name = spec.name.c_str();
    info.dtype_known = spec.dtype.has_value();
    info.dtype = spec.dtype ? dlpack_of(*spec.dtype) : sconce_dtype{};
    info.dtype_name = spec.dtype ? dtype_name(*spec.dtype).data() : "";  // they are literals
    info.device = shown.device.c_str();
    info.ndim = spec.has_shape ? static_cast<int32_t>(spec.dims.size()) : -1;
    info.dims = shown.dims.data();
    info.strides = spec.has_shape && spec.strides.size() == spec.dims.size() ? shown.strides.data() : nullptr;
    info.is_none = spec.none;
    info.may_be_written = spec.may_be_written;
  }
  return all;
}

Signature::Signature(const ModelSpec& spec, std::vector<ConstantSpec> constants)
    : spec_(spec), inputs_(show(spec.inputs)), outputs_(show(spec.outputs)), constants_(std::move(constants)) {
  for (const ConstantSpec& constant : constants_)
    devices_.push_back(constant.device ? to_string(*constant.device) : std::string());
}

sconce_tensor_info Signature::input(size_t index) const {
  SCONCE_CHECK(index < inputs_.size(), kInvalidArgument, "model ", spec_.name, " has no input ", index, ", only ",
               inputs_.size());
  return inputs_[index].info;
}

sconce_tensor_info Signature::output(size_t index) const {
  SCONCE_CHECK(index < outputs_.size(), kInvalidArgument, "model ", spec_.name, " has no output ", index, ", only ",
               outputs_.size());
  return outputs_[index].info;
}

sconce_constant_info Signature::constant(size_t index) const {
  SCONCE_CHECK(index < constants_.size(), kInvalidArgument, "model ", spec_.name, " has no constant ", index, ", only ",
               constants_.size());
  const ConstantSpec& spec = constants_[index];
  sconce_constant_info info{};
  info.name = spec.fqn.empty() ? spec.name.c_str() : spec.fqn.c_str();
  info.code_name = spec.name.c_str();
  info.dtype_known = spec.dtype.has_value();
  info.dtype = spec.dtype ? dlpack_of(*spec.dtype) : sconce_dtype{};
  info.dtype_name = spec.dtype ? dtype_name(*spec.dtype).data() : "";
  info.device = devices_[index].c_str();
  info.ndim = static_cast<int32_t>(spec.shape.size());
  info.shape = spec.shape.data();
  info.strides = spec.strides.size() == spec.shape.size() ? spec.strides.data() : nullptr;
  info.bytes = spec.data_size;
  info.type = static_cast<int32_t>(spec.type);
  info.folded = spec.folded;
  info.mutated = spec.mutated;
  info.opaque = spec.opaque;
  return info;
}

sconce_model_info Signature::info() const noexcept {
  sconce_model_info info{};
  info.name = spec_.name.c_str();
  info.inputs = inputs_.size();
  info.outputs = outputs_.size();
  info.constants = constants_.size();
  return info;
}

}  // namespace sconce::c_api
