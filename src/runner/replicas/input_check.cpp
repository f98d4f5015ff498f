#include "src/runner/replicas/input_check.h"

#include <map>

#include "sconce/check.h"

namespace sconce::runner {
namespace {

// Whether the known strides are those of a contiguous tensor, as far as fixed sizes tell.
bool looks_row_major(const TensorSpec& spec) {
  if (spec.strides.size() != spec.dims.size()) return false;
  int64_t expected = 1;  // -1 once a dynamic size is in the product
  for (size_t d = spec.dims.size(); d-- > 0;) {
    const auto& stride = spec.strides[d];
    if (stride && (expected < 0 || *stride != expected)) return false;
    if (!stride && expected >= 0 && d + 1 < spec.dims.size() && !spec.dims[d].is_static()) {
      // The stride is dynamic although contiguous strides would be fixed, so it is not contiguous.
      return false;
    }
    expected = spec.dims[d].is_static() && expected >= 0 ? expected * spec.dims[d].min : -1;
  }
  return true;
}

}  // namespace

InputCheck::InputCheck(const std::vector<TensorSpec>& inputs, Device device, bool full,
                       const std::vector<int>& least_ranks)
    : device_(device), full_(full) {
  std::map<std::string, Symbol> first;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorSpec& spec = inputs[i];
    Input input{
        spec.name, spec.dtype, spec.has_shape, i < least_ranks.size() ? least_ranks[i] : 0, looks_row_major(spec), {}};
    for (size_t d = 0; d < spec.dims.size(); ++d) {
      const Dim& dim = spec.dims[d];
      CheckedDim checked{dim.min == 2 && !dim.is_static() ? 1 : dim.min, dim.max, -1, {-1, -1}};
      if (d < spec.strides.size() && spec.strides[d]) checked.stride = *spec.strides[d];
      if (!dim.symbol.empty()) {
        const auto [it, inserted] = first.emplace(dim.symbol, Symbol{static_cast<int32_t>(i), static_cast<int32_t>(d)});
        if (!inserted) checked.same_as = it->second;
      }
      input.dims.push_back(checked);
    }
    inputs_.push_back(std::move(input));
  }
}

std::string InputCheck::label(size_t i) const { return "input " + std::to_string(i) + " (" + inputs_[i].name + ")"; }

void InputCheck::operator()(std::span<const Tensor> inputs) const {
  SCONCE_CHECK(inputs.size() == inputs_.size(), kInvalidArgument, "expected ", inputs_.size(), " inputs, got ",
               inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& t = inputs[i];
    const Input& spec = inputs_[i];
    SCONCE_CHECK(t.defined(), kInvalidArgument, label(i), ": the tensor is undefined");
    SCONCE_CHECK(!spec.dtype || t.dtype() == *spec.dtype, kInvalidArgument, label(i), ": expected ",
                 dtype_name(*spec.dtype), ", got ", dtype_name(t.dtype()));
    SCONCE_CHECK(t.device().type == device_.type || t.is_cpu(), kInvalidArgument, label(i), ": expected a tensor on ",
                 to_string(device_), ", got one on ", to_string(t.device()));
    SCONCE_CHECK(t.layout() == Layout::kStrided, kInvalidArgument, label(i), ": expected a strided tensor");
    if (!spec.has_shape) {
      SCONCE_CHECK(t.dim() >= spec.least_rank, kInvalidArgument, label(i), ": expected at least ", spec.least_rank,
                   " dimensions, got ", t.dim(), " in ", to_string(t.sizes()));
      continue;
    }
    SCONCE_CHECK(t.dim() == static_cast<int64_t>(spec.dims.size()), kInvalidArgument, label(i), ": expected ",
                 spec.dims.size(), " dimensions, got ", t.dim(), " in ", to_string(t.sizes()));
    if (full_) check_shape(inputs, i);
  }
}

void InputCheck::check_shape(std::span<const Tensor> inputs, size_t i) const {
  const Tensor& t = inputs[i];
  const Input& spec = inputs_[i];
  for (size_t d = 0; d < spec.dims.size(); ++d) {
    const CheckedDim& dim = spec.dims[d];
    const int64_t size = t.size(static_cast<int64_t>(d));
    if (dim.min == dim.max) {
      SCONCE_CHECK(size == dim.min, kInvalidArgument, label(i), ": expected size ", dim.min, " at dimension ", d,
                   ", got ", size, " in ", to_string(t.sizes()));
    } else {
      SCONCE_CHECK(size >= dim.min, kInvalidArgument, label(i), ": expected size >= ", dim.min, " at dimension ", d,
                   ", got ", size, " in ", to_string(t.sizes()));
      SCONCE_CHECK(size <= dim.max, kInvalidArgument, label(i), ": expected size <= ", dim.max, " at dimension ", d,
                   ", got ", size, " in ", to_string(t.sizes()));
    }
    if (dim.same_as.input >= 0) {
      const int64_t other = inputs[static_cast<size_t>(dim.same_as.input)].size(dim.same_as.dim);
      SCONCE_CHECK(size == other, kInvalidArgument, label(i), ": expected size ", other, " at dimension ", d,
                   " as in dimension ", dim.same_as.dim, " of ", label(static_cast<size_t>(dim.same_as.input)),
                   ", got ", size);
    }
  }
  if (t.numel() == 0) return;
  int64_t contiguous = 1;
  for (size_t d = spec.dims.size(); d-- > 0;) {
    const int64_t size = t.size(static_cast<int64_t>(d)), stride = t.stride(static_cast<int64_t>(d));
    const int64_t expected = spec.dims[d].stride >= 0 ? spec.dims[d].stride : spec.row_major ? contiguous : -1;
    SCONCE_CHECK(size == 1 || expected < 0 || stride == expected, kInvalidArgument, label(i), ": expected stride ",
                 expected, " at dimension ", d, ", got ", stride, " in strides ", to_string(t.strides()));
    contiguous *= size;
  }
}

}  // namespace sconce::runner
