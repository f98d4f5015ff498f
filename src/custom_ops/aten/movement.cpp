// Gathering, scattering, replacing parts of tensors, and PyTorch's primitives that move elements.
#include "src/cpu/movement/movement.h"

#include <algorithm>
#include <complex>
#include <vector>

#include "sconce/check.h"
#include "sconce/float_types.h"
#include "src/cpu/attention/packed_sequence.h"
#include "src/cpu/indexing/index.h"
#include "src/cpu/movement/rearrangements.h"
#include "src/cpu/random/ranges.h"
#include "src/custom_ops/aten/aten.h"
#include "src/custom_ops/operator/boxed.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/fill.h"
#include "src/tensor/strided_loop.h"
#include "src/tensor/view.h"

namespace sconce::custom_ops {
namespace {

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
Tensor copied(const Tensor& self, const Tensor& src, bool) { return cpu::copied(self, src); }
Tensor gather(const Tensor& self, int64_t dim, const Tensor& index, bool) { return cpu::gather(self, dim, index); }
Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
  return cpu::embedding(weight, indices);
}
// Always a new tensor, because the caller may write to it.
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
// Copies what a view operator returns.
template <auto kView>
struct CopyOf;
template <class... Parameters, Tensor (*kView)(Parameters...)>
struct CopyOf<kView> {
  static Tensor copy(Parameters... parameters) { return clone_contiguous(kView(parameters...)); }
};
template <class... Parameters, std::vector<Tensor> (*kView)(Parameters...)>
struct CopyOf<kView> {
  static std::vector<Tensor> copy(Parameters... parameters) {
    std::vector<Tensor> pieces = kView(parameters...);
    for (Tensor& piece : pieces) piece = clone_contiguous(piece);
    return pieces;
  }
};
Tensor expand(const Tensor& self, IntSpan size, bool) { return cpu::expand(self, size); }
Tensor alias(const Tensor& self) { return self; }
template <bool kReflect>
Tensor padded(const Tensor& self, IntSpan padding) {
  return cpu::pad(self, padding, kReflect ? "reflect" : "replicate", std::nullopt);
}
Tensor arange(Scalar end, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return cpu::arange(Scalar(int64_t{0}), end, Scalar(int64_t{1}), dtype, layout, device, pin_memory);
}
Tensor arange_from(Scalar start, Scalar end, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return cpu::arange(start, end, Scalar(int64_t{1}), dtype, layout, device, pin_memory);
}
Tensor eye(int64_t n, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return cpu::eye(n, n, dtype, layout, device, pin_memory);
}
// The number in a tensor of one element.
Scalar number_in(const Tensor& tensor) {
  SCONCE_CHECK(tensor.dim() == 0, kInvalidArgument,
               "linspace and logspace only support 0-dimensional start and end, got ", describe(tensor));
  if (is_complex(tensor.dtype()))
    return std::complex<double>(*to_dtype(tensor, DType::kComplex128).data_as<ComplexDouble>());
  if (is_floating(tensor.dtype())) return *to_dtype(tensor, DType::kFloat64).data_as<double>();
  return *to_dtype(tensor, DType::kInt64).data_as<int64_t>();
}
Scalar number_in(const Scalar& number) { return number; }
template <class Start, class End>
Tensor linspace(Start start, End end, int64_t steps, OptType dtype, OptEnum layout, OptDevice device,
                OptEnum pin_memory) {
  return cpu::linspace(number_in(start), number_in(end), steps, dtype, layout, device, pin_memory);
}
template <class Start, class End>
Tensor logspace(Start start, End end, int64_t steps, double base, OptType dtype, OptEnum layout, OptDevice device,
                OptEnum pin_memory) {
  return cpu::logspace(number_in(start), number_in(end), steps, base, dtype, layout, device, pin_memory);
}
Tensor new_ones(const Tensor& self, IntSpan size, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return cpu::new_full(self, size, Scalar(int64_t{1}), dtype, layout, device, pin_memory);
}
Tensor zeroed(const Tensor& self) {
  Tensor out = empty_like(self);
  zero(out);
  return out;
}
// clang-format off
constexpr AtenRow kRows[] = {
    {"aten::_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", boxed<cpu::_chunk_cat>},
    {"aten::_conj_copy(Tensor self) -> Tensor", boxed<CopyOf<cpu::conj>::copy>},
    {"aten::_index_put_impl(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) -> Tensor", boxed<index_put_impl>},
    {"aten::_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)", boxed<cpu::_pack_padded_sequence>},
    {"aten::_reshape_copy(Tensor self, SymInt[] size) -> Tensor", boxed_anywhere<CopyOf<cpu::reshape>::copy>, kAnyDevice},
    {"aten::_stack(Tensor[] tensors, int dim=0) -> Tensor", boxed_anywhere<cpu::_stack>, kAnyDevice},
    {"aten::_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", boxed<cpu::index_Tensor>},
    {"aten::_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor", boxed<cpu::index_put>},
    {"aten::_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor", boxed<cpu::_unsafe_masked_index>},
    {"aten::_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor", boxed<cpu::_unsafe_masked_index_put_accumulate>},
    {"aten::_unsafe_view(Tensor self, SymInt[] size) -> Tensor", boxed_anywhere<cpu::view>, kAnyDevice},
    {"aten::alias_copy(Tensor self) -> Tensor", boxed_anywhere<CopyOf<alias>::copy>, kAnyDevice},
    {"aten::arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<arange>},
    {"aten::arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<arange_from>},
    {"aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<cpu::arange>},
    {"aten::as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor", boxed_anywhere<CopyOf<cpu::as_strided>::copy>, kAnyDevice},
    {"aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor", boxed_anywhere<cpu::as_strided_scatter>, kAnyDevice},
    {"aten::block_diag(Tensor[] tensors) -> Tensor", boxed<cpu::block_diag>},
    {"aten::channel_shuffle(Tensor self, SymInt groups) -> Tensor", boxed_anywhere<cpu::channel_shuffle>, kAnyDevice},
    {"aten::col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor", boxed<cpu::col2im>},
    {"aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor", boxed_anywhere<cpu::constant_pad_nd>, kAnyDevice},
    {"aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor", boxed_anywhere<copied>, kAnyDevice},
    {"aten::detach_copy(Tensor self) -> Tensor", boxed_anywhere<CopyOf<alias>::copy>, kAnyDevice},
    {"aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", boxed_anywhere<cpu::diag_embed>, kAnyDevice},
    {"aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", boxed_anywhere<cpu::diagonal>, kAnyDevice},
    {"aten::diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", boxed_anywhere<CopyOf<cpu::diagonal>::copy>, kAnyDevice},
    {"aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor", boxed_anywhere<cpu::diagonal_scatter>, kAnyDevice},
    {"aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor", boxed<embedding>},
    {"aten::embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor", boxed<cpu::embedding_renorm>},
    {"aten::empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<empty_permuted>},
    {"aten::expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor", boxed_anywhere<CopyOf<expand>::copy>, kAnyDevice},
    {"aten::eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<eye>},
    {"aten::eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<cpu::eye>},
    {"aten::flip(Tensor self, int[] dims) -> Tensor", boxed<cpu::flip>},
    {"aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", boxed<gather>},
    {"aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor", boxed<cpu::im2col>},
    {"aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor", boxed<cpu::index_add>},
    {"aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", boxed<cpu::index_copy>},
    {"aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", boxed<cpu::index_fill>},
    {"aten::index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor", boxed<cpu::index_fill_tensor>},
    {"aten::index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)", boxed_in_place<index_put_in_place>},
    {"aten::lift_fresh_copy(Tensor self) -> Tensor", boxed_anywhere<CopyOf<alias>::copy>, kAnyDevice},
    {"aten::linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<cpu::linspace>},
    {"aten::linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<linspace<Scalar, const Tensor&>>},
    {"aten::linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<linspace<const Tensor&, Scalar>>},
    {"aten::linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<linspace<const Tensor&, const Tensor&>>},
    {"aten::logspace(Scalar start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<cpu::logspace>},
    {"aten::logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<logspace<Scalar, const Tensor&>>},
    {"aten::logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<logspace<const Tensor&, Scalar>>},
    {"aten::logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<logspace<const Tensor&, const Tensor&>>},
    {"aten::narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor", boxed_anywhere<CopyOf<cpu::narrow>::copy>, kAnyDevice},
    {"aten::new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<new_empty_strided>},
    {"aten::new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<new_ones>},
    {"aten::permute_copy(Tensor self, int[] dims) -> Tensor", boxed_anywhere<CopyOf<cpu::permute>::copy>, kAnyDevice},
    {"aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", boxed_anywhere<cpu::pixel_shuffle>, kAnyDevice},
    {"aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", boxed_anywhere<cpu::pixel_unshuffle>, kAnyDevice},
    {"aten::put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", boxed<cpu::put>},
    {"aten::reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor", boxed_anywhere<padded<true>>, kAnyDevice},
    {"aten::reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor", boxed_anywhere<padded<true>>, kAnyDevice},
    {"aten::reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor", boxed_anywhere<padded<true>>, kAnyDevice},
    {"aten::repeat(Tensor self, SymInt[] repeats) -> Tensor", boxed_anywhere<cpu::repeat>, kAnyDevice},
    {"aten::replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor", boxed_anywhere<padded<false>>, kAnyDevice},
    {"aten::replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor", boxed_anywhere<padded<false>>, kAnyDevice},
    {"aten::replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor", boxed_anywhere<padded<false>>, kAnyDevice},
    {"aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor", boxed_anywhere<cpu::roll>, kAnyDevice},
    {"aten::rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor", boxed<cpu::rot90>},
    {"aten::scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<scalar_tensor>},
    {"aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor", boxed<cpu::scatter_reduce_by>},
    {"aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", boxed<cpu::scatter_src>},
    {"aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", boxed<cpu::scatter_value>},
    {"aten::scatter.value_out(Tensor self, int dim, Tensor index, Scalar value, *, Tensor(a!) out) -> Tensor(a!)", boxed_out<static_cast<void (*)(Tensor&, const Tensor&, int64_t, const Tensor&, Scalar)>(cpu::scatter_value_out)>},
    {"aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", boxed<cpu::scatter_add>},
    {"aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor", boxed<scatter_reduce>},
    {"aten::select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor", boxed_anywhere<cpu::select_backward>, kAnyDevice},
    {"aten::select_copy.int(Tensor self, int dim, SymInt index) -> Tensor", boxed_anywhere<CopyOf<cpu::select>::copy>, kAnyDevice},
    {"aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor", boxed_anywhere<cpu::select_scatter>, kAnyDevice},
    {"aten::slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) -> Tensor", boxed_anywhere<cpu::slice_backward>, kAnyDevice},
    {"aten::slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor", boxed_anywhere<CopyOf<cpu::slice_Tensor>::copy>, kAnyDevice},
    {"aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor", boxed_anywhere<cpu::slice_scatter>, kAnyDevice},
    {"aten::split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", boxed_anywhere<CopyOf<cpu::split>::copy>, kAnyDevice},
    {"aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", boxed_anywhere<cpu::squeeze_dims>, kAnyDevice},
    {"aten::squeeze_copy(Tensor self) -> Tensor", boxed_anywhere<CopyOf<cpu::squeeze>::copy>, kAnyDevice},
    {"aten::squeeze_copy.dim(Tensor self, int dim) -> Tensor", boxed_anywhere<CopyOf<cpu::squeeze_dim>::copy>, kAnyDevice},
    {"aten::squeeze_copy.dims(Tensor self, int[] dim) -> Tensor", boxed_anywhere<CopyOf<cpu::squeeze_dims>::copy>, kAnyDevice},
    {"aten::t_copy(Tensor self) -> Tensor", boxed_anywhere<CopyOf<cpu::t>::copy>, kAnyDevice},
    {"aten::take(Tensor self, Tensor index) -> Tensor", boxed<cpu::take>},
    {"aten::transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor", boxed_anywhere<CopyOf<cpu::transpose>::copy>, kAnyDevice},
    {"aten::tril(Tensor self, SymInt diagonal=0) -> Tensor", boxed<cpu::tril>},
    {"aten::tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<cpu::tril_indices>},
    {"aten::triu(Tensor self, SymInt diagonal=0) -> Tensor", boxed<cpu::triu>},
    {"aten::triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<cpu::triu_indices>},
    {"aten::unbind_copy.int(Tensor self, int dim=0) -> Tensor[]", boxed_anywhere<CopyOf<cpu::unbind>::copy>, kAnyDevice},
    {"aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", boxed_anywhere<cpu::unfold>, kAnyDevice},
    {"aten::unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor", boxed<cpu::unfold_backward>},
    {"aten::unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor", boxed_anywhere<CopyOf<cpu::unfold>::copy>, kAnyDevice},
    {"aten::unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", boxed_anywhere<cpu::split>, kAnyDevice},
    {"aten::unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]", boxed_anywhere<cpu::split_with_sizes>, kAnyDevice},
    {"aten::unsqueeze_copy(Tensor self, int dim) -> Tensor", boxed_anywhere<CopyOf<cpu::unsqueeze>::copy>, kAnyDevice},
    {"aten::view_as_complex_copy(Tensor self) -> Tensor", boxed_anywhere<CopyOf<cpu::view_as_complex>::copy>, kAnyDevice},
    {"aten::view_as_real_copy(Tensor self) -> Tensor", boxed_anywhere<CopyOf<cpu::view_as_real>::copy>, kAnyDevice},
    {"aten::view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor", boxed_anywhere<CopyOf<cpu::view_dtype>::copy>, kAnyDevice},
    {"aten::zero(Tensor self) -> Tensor", boxed_anywhere<zeroed>, kAnyDevice},
    {"prims::convert_element_type(Tensor a, ScalarType dtype) -> Tensor", boxed_anywhere<convert_element_type>, kAnyDevice},
    {"quantized_decomposed::convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor", boxed<convert_element_type>},
    {"prims::rev(Tensor a, int[] dims) -> Tensor", boxed<cpu::flip>},
};
// clang-format on

}  // namespace

std::span<const AtenRow> aten_movement_rows() { return kRows; }

}  // namespace sconce::custom_ops
