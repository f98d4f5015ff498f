// Elementwise operators, products, reductions, sorting, sets.
#include "src/cpu/elementwise/arithmetic.h"
#include "src/cpu/elementwise/binary_functions.h"
#include "src/cpu/elementwise/bitwise.h"
#include "src/cpu/elementwise/division.h"
#include "src/cpu/indexing/index_select.h"
#include "src/cpu/layers/fake_quantize.h"
#include "src/cpu/matmul/products.h"
#include "src/cpu/pooling/resample_antialias.h"
#include "src/cpu/reduction/histogram.h"
#include "src/cpu/reduction/sum.h"
#include "src/cpu/sorting/order_statistics.h"
#include "src/cpu/sorting/search.h"
#include "src/cpu/sorting/sets.h"
#include "src/custom_ops/aten/aten.h"
#include "src/custom_ops/operator/boxed.h"
#include "src/operators/cpu_ops.h"

namespace sconce::custom_ops {
namespace {

Tensor sum_all(const Tensor& self, std::optional<DType> dtype) { return cpu::sum(self, std::nullopt, false, dtype); }

using ScaledProduct = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar);
using ScaledProductOut = void (*)(Tensor&, const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar);
Tensor addmm_activation(const Tensor& self, const Tensor& mat1, const Tensor& mat2, Scalar beta, Scalar alpha,
                        bool use_gelu) {
  return cpu::_addmm_activation(self, mat1, mat2, beta.to_double(), alpha.to_double(), use_gelu);
}
Tensor histc(const Tensor& self, int64_t bins, Scalar min, Scalar max) {
  return cpu::histc(self, bins, min.to_double(), max.to_double());
}
std::optional<double> real(const std::optional<Scalar>& number) {
  return number ? std::optional(number->to_double()) : std::nullopt;
}
Tensor segment_reduce(const Tensor& data, std::string_view reduce, const Tensor* lengths, const Tensor* indices,
                      const Tensor* offsets, int64_t axis, bool unsafe, std::optional<Scalar> initial) {
  return cpu::segment_reduce(data, reduce, lengths, indices, offsets, axis, unsafe, real(initial));
}
Tensor segment_reduce_backward(const Tensor& grad, const Tensor& output, const Tensor& data, std::string_view reduce,
                               const Tensor* lengths, const Tensor* offsets, int64_t axis,
                               std::optional<Scalar> initial) {
  return cpu::_segment_reduce_backward(grad, output, data, reduce, lengths, offsets, axis, real(initial));
}

// clang-format off
constexpr AtenRow kRows[] = {
    {"aten::_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False) -> Tensor", boxed<addmm_activation>},
    {"aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, Tensor fake_quant_enabled, int quant_min, int quant_max) -> (Tensor output, Tensor mask)", boxed<cpu::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams>},
    {"aten::_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor[]", boxed<cpu::_histogramdd_bin_edges>},
    {"aten::_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) -> Tensor", boxed<cpu::_histogramdd_from_bin_tensors>},
    {"aten::_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? lengths=None, Tensor? offsets=None, int axis=0, Scalar? initial=None) -> Tensor", boxed<segment_reduce_backward>},
    {"aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)", boxed<cpu::_unique2>},
    {"aten::_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", boxed<upsample_aa<cpu::low_pass, LowPass::kBicubic>>},
    {"aten::_upsample_bicubic2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", boxed<upsample_aa_backward<cpu::low_pass_backward, LowPass::kBicubic>>},
    {"aten::_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", boxed<upsample_aa<cpu::low_pass, LowPass::kBilinear>>},
    {"aten::_upsample_bilinear2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", boxed<upsample_aa_backward<cpu::low_pass_backward, LowPass::kBilinear>>},
    {"aten::_upsample_lanczos2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", boxed<upsample_aa<cpu::low_pass, LowPass::kLanczos>>},
    {"aten::abs(Tensor self) -> Tensor", boxed<cpu::abs>},
    {"aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", boxed<cpu::add_number>},
    {"aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", boxed<cpu::add>},
    {"aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", boxed<static_cast<ScaledProduct>(cpu::addbmm)>},
    {"aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", boxed<static_cast<ScaledProduct>(cpu::addmm)>},
    {"aten::addmm.out(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)", boxed_out<static_cast<ScaledProductOut>(cpu::addmm_out)>},
    {"aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor", boxed<static_cast<ScaledProduct>(cpu::addmv)>},
    {"aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", boxed<cpu::amax>},
    {"aten::angle(Tensor self) -> Tensor", boxed<cpu::angle>},
    {"aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", boxed<static_cast<ScaledProduct>(cpu::baddbmm)>},
    {"aten::baddbmm.out(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)", boxed_out<static_cast<ScaledProductOut>(cpu::baddbmm_out)>},
    {"aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor", boxed<cpu::bincount>},
    {"aten::bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor", boxed<cpu::bitwise_and>},
    {"aten::bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor", boxed<cpu::bitwise_left_shift>},
    {"aten::bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor", boxed<cpu::bitwise_or>},
    {"aten::bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor", boxed<cpu::bitwise_right_shift>},
    {"aten::bmm(Tensor self, Tensor mat2) -> Tensor", boxed<cpu::bmm>},
    {"aten::bmm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)", boxed_out<cpu::bmm_out>},
    {"aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", boxed<cpu::cumprod>},
    {"aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", boxed<cpu::cumsum>},
    {"aten::fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> (Tensor output, Tensor mask)", boxed<cpu::fake_quantize_per_channel_affine_cachemask>},
    {"aten::fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> (Tensor output, Tensor mask)", boxed<cpu::fake_quantize_per_tensor_affine_cachemask>},
    {"aten::floor_divide(Tensor self, Tensor other) -> Tensor", boxed<cpu::floor_divide>},
    {"aten::gcd(Tensor self, Tensor other) -> Tensor", boxed<cpu::gcd>},
    {"aten::hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor", boxed<cpu::shrink_backward>},
    {"aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", boxed<histc>},
    {"aten::histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)", boxed<cpu::histogram_bins_tensor>},
    {"aten::index_select(Tensor self, int dim, Tensor index) -> Tensor", boxed<cpu::index_select>},
    {"aten::masked_select(Tensor self, Tensor mask) -> Tensor", boxed<cpu::masked_select>},
    {"aten::matmul(Tensor self, Tensor other) -> Tensor", boxed<cpu::matmul>},
    {"aten::median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", boxed<cpu::median_dim>},
    {"aten::mm(Tensor self, Tensor mat2) -> Tensor", boxed<cpu::mm>},
    {"aten::mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)", boxed_out<cpu::mm_out>},
    {"aten::mul.Scalar(Tensor self, Scalar other) -> Tensor", boxed<cpu::multiply_number>},
    {"aten::mul.Tensor(Tensor self, Tensor other) -> Tensor", boxed<static_cast<Tensor (*)(const Tensor&, const Tensor&)>(cpu::multiply)>},
    {"aten::nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", boxed<cpu::nanmedian_dim>},
    {"aten::nonzero(Tensor self) -> Tensor", boxed<cpu::nonzero>},
    {"aten::polar(Tensor abs, Tensor angle) -> Tensor", boxed<cpu::polar>},
    {"aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", boxed<cpu::pow_Tensor_Tensor>},
    {"aten::searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor", boxed<cpu::searchsorted_number>},
    {"aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor", boxed<cpu::searchsorted_Tensor>},
    {"aten::segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor", boxed<segment_reduce>},
    {"aten::softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor", boxed<cpu::shrink_backward>},
    {"aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)", boxed<cpu::sort>},
    {"aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)", boxed<cpu::sort_stable>},
    {"aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", boxed<cpu::subtract_number>},
    {"aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", boxed<cpu::subtract>},
    {"aten::subtract.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", boxed<cpu::subtract_number>},
    {"aten::subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", boxed<cpu::subtract>},
    {"aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", boxed<sum_all>},
    {"aten::sum.IntList_out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)", boxed_out<cpu::sum_out>},
    {"aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", boxed<cpu::sum>},
    {"aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)", boxed<cpu::topk>},
    {"aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)", boxed<cpu::unique_consecutive>},
    {"aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)", boxed<cpu::unique_dim>},
    {"aten::unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)", boxed<cpu::unique_dim_consecutive>},
};
// clang-format on

}  // namespace

std::span<const AtenRow> aten_math_rows() { return kRows; }

}  // namespace sconce::custom_ops
