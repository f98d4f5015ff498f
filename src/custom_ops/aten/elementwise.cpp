// Elementwise functions that Inductor compiles itself unless it is told to call operators.
#include "src/cpu/elementwise/activations.h"
#include "src/cpu/elementwise/arithmetic.h"
#include "src/cpu/elementwise/bitwise.h"
#include "src/cpu/elementwise/comparisons.h"
#include "src/cpu/elementwise/functions.h"
#include "src/cpu/elementwise/real_functions.h"
#include "src/cpu/elementwise/special.h"
#include "src/custom_ops/aten/aten.h"
#include "src/custom_ops/operator/boxed.h"
#include "src/tensor/copy.h"
#include "src/tensor/type_promotion.h"

namespace sconce::custom_ops {
namespace {

Tensor rsub(const Tensor& self, const Tensor& other, Scalar alpha) { return cpu::subtract(other, self, alpha); }
Tensor rsub_number(const Tensor& self, Scalar other, Scalar alpha) {
  const DType dtype = ResultType().add(self).add_number(other).get();
  return cpu::subtract(to_dtype(number_tensor(other), dtype), self, alpha);
}

// clang-format off
constexpr AtenRow kRows[] = {
    {"aten::_prelu_kernel(Tensor self, Tensor weight) -> Tensor", boxed<cpu::_prelu_kernel>},
    {"aten::_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)", boxed<cpu::_prelu_kernel_backward>},
    {"aten::atan2(Tensor self, Tensor other) -> Tensor", boxed<cpu::atan2>},
    {"aten::bitwise_not(Tensor self) -> Tensor", boxed<cpu::bitwise_not>},
    {"aten::bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor", boxed<cpu::bitwise_xor>},
    {"aten::ceil(Tensor self) -> Tensor", boxed<cpu::ceil>},
    {"aten::celu(Tensor self, Scalar alpha=1.) -> Tensor", boxed<cpu::celu>},
    {"aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", boxed<cpu::clamp>},
    {"aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", boxed<cpu::clamp_tensor>},
    {"aten::clamp_max(Tensor self, Scalar max) -> Tensor", boxed<cpu::clamp_max>},
    {"aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor", boxed<cpu::clamp_max_tensor>},
    {"aten::clamp_min(Tensor self, Scalar min) -> Tensor", boxed<cpu::clamp_min>},
    {"aten::clamp_min.Tensor(Tensor self, Tensor min) -> Tensor", boxed<cpu::clamp_min_tensor>},
    {"aten::copysign.Scalar(Tensor self, Scalar other) -> Tensor", boxed<cpu::copysign_number>},
    {"aten::copysign.Tensor(Tensor self, Tensor other) -> Tensor", boxed<cpu::copysign>},
    {"aten::deg2rad(Tensor self) -> Tensor", boxed<cpu::deg2rad>},
    {"aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor", boxed<cpu::elu>},
    {"aten::elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result) -> Tensor", boxed<cpu::elu_backward>},
    {"aten::erf(Tensor self) -> Tensor", boxed<cpu::erf>},
    {"aten::erfc(Tensor self) -> Tensor", boxed<cpu::erfc>},
    {"aten::floor(Tensor self) -> Tensor", boxed<cpu::floor>},
    {"aten::fmax(Tensor self, Tensor other) -> Tensor", boxed<cpu::fmax>},
    {"aten::fmin(Tensor self, Tensor other) -> Tensor", boxed<cpu::fmin>},
    {"aten::fmod.Scalar(Tensor self, Scalar other) -> Tensor", boxed<cpu::fmod_number>},
    {"aten::fmod.Tensor(Tensor self, Tensor other) -> Tensor", boxed<cpu::fmod>},
    {"aten::frac(Tensor self) -> Tensor", boxed<cpu::frac>},
    {"aten::frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", boxed<cpu::frexp>},
    {"aten::ge.Scalar(Tensor self, Scalar other) -> Tensor", boxed<cpu::ge_number>},
    {"aten::ge.Tensor(Tensor self, Tensor other) -> Tensor", boxed<cpu::ge>},
    {"aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor", boxed<cpu::gelu>},
    {"aten::gelu_backward(Tensor grad_output, Tensor self, *, str approximate=\"none\") -> Tensor", boxed<cpu::gelu_backward>},
    {"aten::glu(Tensor self, int dim=-1) -> Tensor", boxed<cpu::glu>},
    {"aten::glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor", boxed<cpu::glu_backward>},
    {"aten::gt.Scalar(Tensor self, Scalar other) -> Tensor", boxed<cpu::gt_number>},
    {"aten::gt.Tensor(Tensor self, Tensor other) -> Tensor", boxed<cpu::gt>},
    {"aten::hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", boxed<cpu::hardshrink>},
    {"aten::hardsigmoid(Tensor self) -> Tensor", boxed<cpu::hardsigmoid>},
    {"aten::hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor", boxed<cpu::hardsigmoid_backward>},
    {"aten::hardswish(Tensor self) -> Tensor", boxed<cpu::hardswish>},
    {"aten::hardswish_backward(Tensor grad_output, Tensor self) -> Tensor", boxed<cpu::hardswish_backward>},
    {"aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", boxed<cpu::hardtanh>},
    {"aten::hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor", boxed<cpu::hardtanh_backward>},
    {"aten::heaviside(Tensor self, Tensor values) -> Tensor", boxed<cpu::heaviside>},
    {"aten::hypot(Tensor self, Tensor other) -> Tensor", boxed<cpu::hypot>},
    {"aten::isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor", boxed<cpu::isin_of_number>},
    {"aten::isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> Tensor", boxed<cpu::isin_number>},
    {"aten::isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor", boxed<cpu::isin>},
    {"aten::isneginf(Tensor self) -> Tensor", boxed<cpu::isneginf>},
    {"aten::isposinf(Tensor self) -> Tensor", boxed<cpu::isposinf>},
    {"aten::lcm(Tensor self, Tensor other) -> Tensor", boxed<cpu::lcm>},
    {"aten::le.Scalar(Tensor self, Scalar other) -> Tensor", boxed<cpu::le_number>},
    {"aten::le.Tensor(Tensor self, Tensor other) -> Tensor", boxed<cpu::le>},
    {"aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", boxed<cpu::leaky_relu>},
    {"aten::leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor", boxed<cpu::leaky_relu_backward>},
    {"aten::lgamma(Tensor self) -> Tensor", boxed<cpu::lgamma>},
    {"aten::log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor", boxed<cpu::log_sigmoid_backward>},
    {"aten::log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)", boxed<cpu::log_sigmoid_forward>},
    {"aten::logaddexp(Tensor self, Tensor other) -> Tensor", boxed<cpu::logaddexp>},
    {"aten::logaddexp2(Tensor self, Tensor other) -> Tensor", boxed<cpu::logaddexp2>},
    {"aten::logit(Tensor self, float? eps=None) -> Tensor", boxed<cpu::logit>},
    {"aten::logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor", boxed<cpu::logit_backward>},
    {"aten::lt.Scalar(Tensor self, Scalar other) -> Tensor", boxed<cpu::lt_number>},
    {"aten::lt.Tensor(Tensor self, Tensor other) -> Tensor", boxed<cpu::lt>},
    {"aten::maximum(Tensor self, Tensor other) -> Tensor", boxed<cpu::maximum>},
    {"aten::minimum(Tensor self, Tensor other) -> Tensor", boxed<cpu::minimum>},
    {"aten::mish(Tensor self) -> Tensor", boxed<cpu::mish>},
    {"aten::mish_backward(Tensor grad_output, Tensor self) -> Tensor", boxed<cpu::mish_backward>},
    {"aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor", boxed<cpu::nan_to_num>},
    {"aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor", boxed<cpu::native_dropout_backward>},
    {"aten::rad2deg(Tensor self) -> Tensor", boxed<cpu::rad2deg>},
    {"aten::relu(Tensor self) -> Tensor", boxed<cpu::relu>},
    {"aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor", boxed<cpu::remainder_number>},
    {"aten::remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", boxed<cpu::remainder_of_number>},
    {"aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor", boxed<cpu::remainder>},
    {"aten::round(Tensor self) -> Tensor", boxed<cpu::round>},
    {"aten::round.decimals(Tensor self, *, int decimals) -> Tensor", boxed<cpu::round_decimals>},
    {"aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", boxed<rsub_number>},
    {"aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", boxed<rsub>},
    {"aten::sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor", boxed<cpu::sigmoid_backward>},
    {"aten::sign(Tensor self) -> Tensor", boxed<cpu::sign>},
    {"aten::signbit(Tensor self) -> Tensor", boxed<cpu::signbit>},
    {"aten::silu_backward(Tensor grad_output, Tensor self) -> Tensor", boxed<cpu::silu_backward>},
    {"aten::sinc(Tensor self) -> Tensor", boxed<cpu::sinc>},
    {"aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", boxed<cpu::softplus>},
    {"aten::softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor", boxed<cpu::softplus_backward>},
    {"aten::softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", boxed<cpu::softshrink>},
    {"aten::special_bessel_j0(Tensor self) -> Tensor", boxed<cpu::special_bessel_j0>},
    {"aten::special_bessel_j1(Tensor self) -> Tensor", boxed<cpu::special_bessel_j1>},
    {"aten::special_bessel_y0(Tensor self) -> Tensor", boxed<cpu::special_bessel_y0>},
    {"aten::special_bessel_y1(Tensor self) -> Tensor", boxed<cpu::special_bessel_y1>},
    {"aten::special_entr(Tensor self) -> Tensor", boxed<cpu::special_entr>},
    {"aten::special_modified_bessel_i0(Tensor self) -> Tensor", boxed<cpu::i0>},
    {"aten::special_modified_bessel_i1(Tensor self) -> Tensor", boxed<cpu::special_i1>},
    {"aten::tanh_backward(Tensor grad_output, Tensor output) -> Tensor", boxed<cpu::tanh_backward>},
    {"aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", boxed<cpu::threshold>},
    {"aten::threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor", boxed<cpu::threshold_backward>},
    {"aten::trunc(Tensor self) -> Tensor", boxed<cpu::trunc>},
    {"aten::xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor", boxed<cpu::xlogy_number>},
    {"aten::xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor", boxed<cpu::xlogy_of_number>},
    {"aten::xlogy.Tensor(Tensor self, Tensor other) -> Tensor", boxed<cpu::xlogy>},
};
// clang-format on

}  // namespace

std::span<const AtenRow> aten_elementwise_rows() { return kRows; }

}  // namespace sconce::custom_ops
