// Gathering, scattering, tensors with a part replaced; PyTorch's primitives that move elements.
#include <algorithm>
#include <vector>

#include "sconce/check.h"
#include "src/custom_ops/aten.h"
#include "src/custom_ops/boxed.h"
#include "src/ops/copy.h"
#include "src/ops/dimensions.h"
#include "src/ops/index.h"
#include "src/ops/movement.h"
#include "src/ops/scatter.h"
#include "src/ops/strided_loop.h"
#include "src/ops/view.h"

namespace sconce::custom_ops {
namespace {

using OptType = std::optional<DType>;
using OptEnum = std::optional<int32_t>;
using OptDevice = std::optional<Device>;

Tensor scalar_tensor(Scalar number, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return cpu::full({}, number, dtype.value_or(kDefaultDType), layout, device, pin_memory);
}
Tensor new_empty_strided(const Tensor& self, IntSpan size, IntSpan stride, OptType dtype, OptEnum layout,
                         OptDevice device, OptEnum pin_memory) {
  return cpu::empty_strided(size, stride, dtype.value_or(self.dtype()), layout, device, pin_memory);
}
Tensor empty_permuted(IntSpan size, IntSpan physical_layout, OptType dtype, OptEnum layout, OptDevice device,
                      OptEnum pin_memory) {
  SCONCE_CHECK(size.size() == physical_layout.size(), kInvalidArgument,
               "empty_permuted: Number of dimensions in size does not match the length of the physical_layout");
  Shape strides;
  strides.resize(static_cast<int>(size.size()));
  int64_t step = 1;
  for (size_t i = size.size(); i-- > 0;) {
    const auto d =
        static_cast<size_t>(wrap_dim("empty_permuted", physical_layout[i], static_cast<int64_t>(size.size())));
    strides[static_cast<int>(d)] = step;
    step *= std::max<int64_t>(size[d], 1);
  }
  return cpu::empty_strided(size, strides, dtype, layout, device, pin_memory);
}
Tensor as_strided_copy(const Tensor& self, IntSpan size, IntSpan stride, std::optional<int64_t> storage_offset) {
  return clone_contiguous(cpu::as_strided(self, size, stride, storage_offset));
}
Tensor copied(const Tensor& self, const Tensor& src, bool) { return cpu::copied(self, src); }
Tensor gather(const Tensor& self, int64_t dim, const Tensor& index, bool) { return cpu::gather(self, dim, index); }
Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
  return cpu::embedding(weight, indices);
}
Tensor lift_fresh_copy(const Tensor& self) { return clone_contiguous(self); }
// Never the tensor itself, which the caller may write.
Tensor convert_element_type(const Tensor& self, DType dtype) {
  return self.dtype() == dtype ? clone(self) : to_dtype(self, dtype);
}

void index_put_in_place(Tensor& self, OptTensorList indices, const Tensor& values, bool accumulate) {
  std::vector<const Tensor*> given;
  for (size_t d = 0; d < indices.size(); ++d) given.push_back(indices[d]);
  cpu::index_put_out(self, self, given, values, accumulate);
}
Tensor index_put_impl(const Tensor& self, OptTensorList indices, const Tensor& values, bool accumulate, bool) {
  return cpu::index_put(self, indices, values, accumulate);
}
Tensor scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                      bool include_self) {
  Tensor out = Tensor::empty(self.sizes(), self.dtype());
  cpu::scatter_reduce_two_out(out, self, dim, index, src, reduce, include_self);
  return out;
}
Tensor reshape_copy(const Tensor& self, IntSpan size) { return clone_contiguous(cpu::reshape(self, size)); }
Tensor conj_copy(const Tensor& self) { return clone_contiguous(cpu::conj(self)); }
Tensor detach_copy(const Tensor& self) { return clone_contiguous(self); }
Tensor view_as_real_copy(const Tensor& self) { return clone_contiguous(cpu::view_as_real(self)); }
Tensor view_as_complex_copy(const Tensor& self) { return clone_contiguous(cpu::view_as_complex(self)); }
Tensor select_copy(const Tensor& self, int64_t dim, int64_t index) {
  return clone_contiguous(cpu::select(self, dim, index));
}
Tensor slice_copy(const Tensor& self, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                  int64_t step) {
  return clone_contiguous(cpu::slice_Tensor(self, dim, start, end, step));
}
std::vector<Tensor> split_copy(const Tensor& self, int64_t split_size, int64_t dim) {
  std::vector<Tensor> pieces = cpu::split(self, split_size, dim);
  for (Tensor& piece : pieces) piece = clone_contiguous(piece);
  return pieces;
}

// clang-format off
constexpr AtenRow kRows[] = {
    {"aten::_conj_copy(Tensor self) -> Tensor", boxed<conj_copy>},
    {"aten::_index_put_impl(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) -> Tensor", boxed<index_put_impl>},
    {"aten::_reshape_copy(Tensor self, SymInt[] size) -> Tensor", boxed<reshape_copy>},
    {"aten::_stack(Tensor[] tensors, int dim=0) -> Tensor", boxed<cpu::stack>},
    {"aten::_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", boxed<cpu::index_Tensor>},
    {"aten::_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor", boxed<cpu::index_put>},
    {"aten::_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor", boxed<cpu::_unsafe_masked_index>},
    {"aten::_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor", boxed<cpu::_unsafe_masked_index_put_accumulate>},
    {"aten::as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor", boxed<as_strided_copy>},
    {"aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor", boxed<cpu::as_strided_scatter>},
    {"aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor", boxed<cpu::constant_pad_nd>},
    {"aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor", boxed<copied>},
    {"aten::detach_copy(Tensor self) -> Tensor", boxed<detach_copy>},
    {"aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", boxed<cpu::diagonal>},
    {"aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor", boxed<cpu::diagonal_scatter>},
    {"aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor", boxed<embedding>},
    {"aten::embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor", boxed<cpu::embedding_renorm>},
    {"aten::empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<empty_permuted>},
    {"aten::flip(Tensor self, int[] dims) -> Tensor", boxed<cpu::flip>},
    {"aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", boxed<gather>},
    {"aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor", boxed<cpu::index_add>},
    {"aten::index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)", boxed_in_place<index_put_in_place>},
    {"aten::lift_fresh_copy(Tensor self) -> Tensor", boxed<lift_fresh_copy>},
    {"aten::new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<new_empty_strided>},
    {"aten::repeat(Tensor self, SymInt[] repeats) -> Tensor", boxed<cpu::repeat>},
    {"aten::scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<scalar_tensor>},
    {"aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor", boxed<cpu::scatter_reduce_by>},
    {"aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", boxed<cpu::scatter_src>},
    {"aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", boxed<cpu::scatter_value>},
    {"aten::scatter.value_out(Tensor self, int dim, Tensor index, Scalar value, *, Tensor(a!) out) -> Tensor(a!)", boxed_out<static_cast<void (*)(Tensor&, const Tensor&, int64_t, const Tensor&, Scalar)>(cpu::scatter_value_out)>},
    {"aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", boxed<cpu::scatter_add>},
    {"aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor", boxed<scatter_reduce>},
    {"aten::select_copy.int(Tensor self, int dim, SymInt index) -> Tensor", boxed<select_copy>},
    {"aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor", boxed<cpu::select_scatter>},
    {"aten::slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor", boxed<slice_copy>},
    {"aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor", boxed<cpu::slice_scatter>},
    {"aten::split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", boxed<split_copy>},
    {"aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", boxed<cpu::squeeze_dims>},
    {"aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", boxed<cpu::unfold>},
    {"aten::view_as_complex_copy(Tensor self) -> Tensor", boxed<view_as_complex_copy>},
    {"aten::view_as_real_copy(Tensor self) -> Tensor", boxed<view_as_real_copy>},
    {"prims::convert_element_type(Tensor a, ScalarType dtype) -> Tensor", boxed<convert_element_type>},
    {"prims::rev(Tensor a, int[] dims) -> Tensor", boxed<cpu::flip>},
};
// clang-format on

}  // namespace

std::span<const AtenRow> aten_movement_rows() { return kRows; }

}  // namespace sconce::custom_ops
