#include "src/runner/replicas/input_check.h"

#include <array>

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
                       const std::vector<int>& least_ranks, std::span<const AccessBound> bounds)
    : relations_(inputs, bounds), device_(device), full_(full) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorSpec& spec = inputs[i];
    Input input{
        spec.name, spec.dtype, spec.has_shape, i < least_ranks.size() ? least_ranks[i] : 0, looks_row_major(spec), {}};
    for (size_t d = 0; d < spec.dims.size(); ++d) {
      const Dim& dim = spec.dims[d];
      CheckedDim checked{dim.is_static() ? dim.min : -1, dim.min, -1};
      if (d < spec.strides.size() && spec.strides[d]) checked.stride = *spec.strides[d];
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
    if (full_) check_fixed(t, i);
  }
  if (!full_) return;
  check_relations(inputs);
  for (size_t i = 0; i < inputs.size(); ++i) check_strides(inputs[i], i);
}

void InputCheck::check_fixed(const Tensor& t, size_t i) const {
  const Input& spec = inputs_[i];
  for (size_t d = 0; d < spec.dims.size(); ++d) {
    const int64_t size = t.size(static_cast<int64_t>(d)), fixed = spec.dims[d].fixed;
    SCONCE_CHECK(fixed < 0 || size == fixed, kInvalidArgument, label(i), ": expected size ", fixed, " at dimension ", d,
                 ", got ", size, " in ", to_string(t.sizes()));
  }
}

void InputCheck::check_relations(std::span<const Tensor> inputs) const {
  const std::vector<SizeRelations::Place>& places = relations_.places();
  if (places.empty()) return;
  std::array<int64_t, 64> few;
  std::vector<int64_t> many;
  if (places.size() > few.size()) many.resize(places.size());
  const std::span<int64_t> sizes = many.empty() ? std::span(few).first(places.size()) : std::span(many);
  for (size_t k = 0; k < places.size(); ++k)
    sizes[k] = inputs[places[k].input].size(static_cast<int64_t>(places[k].dim));
  if (!relations_.agrees(sizes)) [[unlikely]] {
    const auto violation = relations_.violation(sizes, [&](size_t i) { return label(i); });
    const size_t i = violation->place.input;
    SCONCE_CHECK(!violation->undecidable, kUnsupported, label(i), ": ", violation->text, " in ",
                 to_string(inputs[i].sizes()));
    SCONCE_FAIL(kInvalidArgument, label(i), ": ", violation->text, " in ", to_string(inputs[i].sizes()));
  }
  if (device_.type == DeviceType::kCpu) return;
  // On the CPU, an access behind a tensor without elements reads zeros. A device would be lost for all models.
  for (size_t k = 0; k < places.size(); ++k) {
    const auto [i, d] = places[k];
    SCONCE_CHECK(sizes[k] > 0 || inputs_[i].dims[d].least == 0, kInvalidArgument, label(i),
                 ": expected size >= 1 at dimension ", d, ", got 0 in ", to_string(inputs[i].sizes()),
                 ": for a device, the package must record that it may be 0");
  }
}

void InputCheck::check_strides(const Tensor& t, size_t i) const {
  const Input& spec = inputs_[i];
  if (!spec.has_shape) return;
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
