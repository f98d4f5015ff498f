// Elementwise functions and reductions that Inductor leaves to operators for complex numbers.
#include "src/cpu/elementwise/functions.h"

#include "sconce/check.h"
#include "src/cpu/elementwise/activations.h"
#include "src/cpu/elementwise/arithmetic.h"
#include "src/cpu/elementwise/binary_functions.h"
#include "src/cpu/elementwise/comparisons.h"
#include "src/cpu/elementwise/division.h"
#include "src/cpu/elementwise/real_functions.h"
#include "src/cpu/elementwise/special.h"
#include "src/cpu/matmul/products.h"
#include "src/cpu/random/distribution_gradients.h"
#include "src/cpu/random/keyed_random.h"
#include "src/cpu/reduction/extrema.h"
#include "src/cpu/reduction/moments.h"
#include "src/cpu/reduction/norms.h"
#include "src/cpu/sorting/sets.h"
#include "src/custom_ops/aten/aten.h"
#include "src/custom_ops/operator/boxed.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/type_promotion.h"

namespace sconce::custom_ops {
namespace {

IntSpan only(const int64_t& dim) { return {&dim, 1}; }
Tensor mean_all(const Tensor& self, OptType dtype) { return cpu::mean(self, {}, false, dtype); }
Tensor prod_all(const Tensor& self, OptType dtype) { return cpu::prod(self, {}, false, dtype); }
Tensor prod_dim(const Tensor& self, int64_t dim, bool keepdim, OptType dtype) {
  return cpu::prod(self, only(dim), keepdim, dtype);
}
Tensor any_all(const Tensor& self) { return cpu::any(self, {}, false); }
Tensor any_dim(const Tensor& self, int64_t dim, bool keepdim) { return cpu::any(self, only(dim), keepdim); }
// mode: "trunc", "floor" (both for real numbers only) or none.
Tensor divide_by_mode(const Tensor& self, const Tensor& other, std::optional<std::string_view> mode) {
  if (!mode) return cpu::divide(self, other);
  if (*mode == "floor") return cpu::floor_divide(self, other);
  SCONCE_CHECK(*mode == "trunc", kInvalidArgument,
               "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", *mode, "'");
  const DType dtype = ResultType().add(self).add(other).get();
  // ATen truncates a half quotient by a single number before it rounds it.
  const bool exact = other.numel() == 1 && (dtype == DType::kFloat16 || dtype == DType::kBFloat16);
  if (exact) {
    const Tensor wide = to_dtype(to_dtype(self, dtype), DType::kFloat32);
    return to_dtype(cpu::trunc(cpu::divide(wide, to_dtype(other, DType::kFloat32))), dtype);
  }
  if (!is_integral(dtype, true)) return cpu::trunc(cpu::divide(self, other));
  return cpu::truncate_divide(self, other);
}
Tensor divide_number_by_mode(const Tensor& self, Scalar other, std::optional<std::string_view> mode) {
  const DType dtype = ResultType().add(self).add_number(other).get();
  if (!mode) return cpu::divide_number(self, other);
  const bool half = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  const Tensor number = to_dtype(number_tensor(other), half ? DType::kFloat32 : dtype);
  return to_dtype(divide_by_mode(to_dtype(self, dtype), number, mode), dtype);
}
bool is_true(const Tensor& flag) { return *static_cast<const uint8_t*>(flag.data()) != 0; }
Tensor is_any_true(const Tensor& self) { return cpu::any(self, {}, false); }
Tensor is_all_true(const Tensor& self) { return cpu::logical_not(cpu::any(cpu::logical_not(self), {}, false)); }
void assert_async_message(const Tensor& self, std::string_view message) {
  SCONCE_CHECK(self.numel() == 1, kInvalidArgument, "_assert_async: Boolean value of Tensor with ",
               self.numel() == 0 ? "no values" : "more than one value", " is ambiguous");
  SCONCE_CHECK(is_true(to_dtype(self, DType::kBool)), kInvalidArgument, message);
}
void assert_async(const Tensor& self) {
  assert_async_message(self, "Expected Tensor with single nonzero value, but got zero");
}
Tensor functional_assert_async(const Tensor& self, std::string_view message, const Tensor& dep_token) {
  assert_async_message(self, message);
  return clone(dep_token);
}

using Polynomial = Tensor (*)(const Tensor&, const Tensor&);
// The number as a tensor, in the promoted dtype of number and tensor.
Tensor beside(const Tensor& tensor, const Scalar& number) {
  return to_dtype(number_tensor(number), ResultType().add(tensor).add_number(number).get());
}
template <Polynomial kPolynomial>
Tensor of_number(Scalar x, const Tensor& n) {
  return kPolynomial(beside(n, x), n);
}
template <Polynomial kPolynomial>
Tensor of_degree(const Tensor& x, Scalar n) {
  return kPolynomial(x, beside(x, n));
}

// A packed copy, unlike conj's view.
Tensor _conj_physical(const Tensor& self) { return cpu::conj(clone(self)); }
Tensor conj_physical(const Tensor& self) { return is_complex(self.dtype()) ? _conj_physical(self) : self; }

std::array<Tensor, 2> aminmax_all(const Tensor& self) { return cpu::aminmax(self, std::nullopt, false); }
std::array<Tensor, 2> aminmax_dim(const Tensor& self, int64_t dim, bool keepdim) {
  return cpu::aminmax(self, dim, keepdim);
}
std::array<Tensor, 2> unique(const Tensor& self, bool sorted, bool return_inverse) {
  const std::array<Tensor, 3> found = cpu::_unique2(self, sorted, return_inverse, false);
  return {found[0], found[1]};
}
// For tensors that are not quantised.
Tensor dequantize(const Tensor& self) { return to_dtype(self, DType::kFloat32); }

// clang-format off
constexpr AtenRow kRows[] = {
    {"aten::_add_relu.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", boxed<cpu::_add_relu_number>},
    {"aten::_add_relu.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", boxed<cpu::_add_relu>},
    {"aten::_aminmax(Tensor self) -> (Tensor, Tensor)", boxed<aminmax_all>},
    {"aten::_aminmax.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)", boxed<aminmax_dim>},
    {"aten::_assert_async(Tensor self) -> ()", boxed<assert_async>},
    {"aten::_assert_async.msg(Tensor self, str assert_msg) -> ()", boxed<assert_async_message>},
    {"aten::_functional_assert_async.msg(Tensor self, str assert_msg, Tensor dep_token) -> Tensor", boxed<functional_assert_async>},
    {"aten::_compute_linear_combination(Tensor input, Tensor coefficients) -> Tensor", boxed<cpu::_compute_linear_combination>},
    {"aten::_conj_physical(Tensor self) -> Tensor", boxed<_conj_physical>},
    {"aten::_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor", boxed<cpu::_dirichlet_grad>},
    {"aten::_is_all_true(Tensor self) -> Tensor", boxed<is_all_true>},
    {"aten::_is_any_true(Tensor self) -> Tensor", boxed<is_any_true>},
    {"aten::_logcumsumexp(Tensor self, int dim) -> Tensor", boxed<cpu::logcumsumexp>},
    {"aten::_philox_key_fold_in(Tensor key, int data) -> Tensor", boxed<cpu::_philox_key_fold_in>},
    {"aten::_philox_key_fold_in.Tensor(Tensor key, Tensor data) -> Tensor", boxed<cpu::_philox_key_fold_in_tensor>},
    {"aten::_philox_key_split(Tensor key, int num_splits) -> Tensor", boxed<cpu::_philox_key_split>},
    {"aten::_philox_normal(Tensor self, Tensor key, float mean=0., float std=1.) -> Tensor", boxed<cpu::_philox_normal>},
    {"aten::_philox_randint(Tensor self, Tensor key, int? low=None, int? high=None) -> Tensor", boxed<cpu::_philox_randint>},
    {"aten::_philox_uniform(Tensor self, Tensor key, float low=0., float high=1.) -> Tensor", boxed<cpu::_philox_uniform>},
    {"aten::_standard_gamma_grad(Tensor self, Tensor output) -> Tensor", boxed<cpu::_standard_gamma_grad>},
    {"aten::_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)", boxed<unique>},
    {"aten::acos(Tensor self) -> Tensor", boxed<cpu::acos>},
    {"aten::acosh(Tensor self) -> Tensor", boxed<cpu::acosh>},
    {"aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", boxed<cpu::addcdiv>},
    {"aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", boxed<cpu::addcmul>},
    {"aten::any(Tensor self) -> Tensor", boxed<any_all>},
    {"aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", boxed<any_dim>},
    {"aten::any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", boxed<cpu::any>},
    {"aten::asin(Tensor self) -> Tensor", boxed<cpu::asin>},
    {"aten::asinh(Tensor self) -> Tensor", boxed<cpu::asinh>},
    {"aten::atan(Tensor self) -> Tensor", boxed<cpu::atan>},
    {"aten::atanh(Tensor self) -> Tensor", boxed<cpu::atanh>},
    {"aten::complex(Tensor real, Tensor imag) -> Tensor", boxed<cpu::complex>},
    {"aten::conj_physical(Tensor self) -> Tensor", boxed<conj_physical>},
    {"aten::cos(Tensor self) -> Tensor", boxed<cpu::cos>},
    {"aten::cosh(Tensor self) -> Tensor", boxed<cpu::cosh>},
    {"aten::dequantize.self(Tensor self) -> Tensor", boxed<dequantize>},
    {"aten::digamma(Tensor self) -> Tensor", boxed<cpu::digamma>},
    {"aten::div.Scalar(Tensor self, Scalar other) -> Tensor", boxed<cpu::divide_number>},
    {"aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor", boxed<divide_number_by_mode>},
    {"aten::div.Tensor(Tensor self, Tensor other) -> Tensor", boxed<static_cast<Tensor (*)(const Tensor&, const Tensor&)>(cpu::divide)>},
    {"aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", boxed<divide_by_mode>},
    {"aten::eq.Scalar(Tensor self, Scalar other) -> Tensor", boxed<cpu::eq_number>},
    {"aten::eq.Tensor(Tensor self, Tensor other) -> Tensor", boxed<cpu::eq>},
    {"aten::erfinv(Tensor self) -> Tensor", boxed<cpu::erfinv>},
    {"aten::exp(Tensor self) -> Tensor", boxed<cpu::exp>},
    {"aten::exp2(Tensor self) -> Tensor", boxed<cpu::exp2>},
    {"aten::expm1(Tensor self) -> Tensor", boxed<cpu::expm1>},
    {"aten::hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor", boxed<cpu::hash_tensor>},
    {"aten::i0(Tensor self) -> Tensor", boxed<cpu::i0>},
    {"aten::igamma(Tensor self, Tensor other) -> Tensor", boxed<cpu::igamma>},
    {"aten::igammac(Tensor self, Tensor other) -> Tensor", boxed<cpu::igammac>},
    {"aten::isinf(Tensor self) -> Tensor", boxed<cpu::isinf>},
    {"aten::isnan(Tensor self) -> Tensor", boxed<cpu::isnan>},
    {"aten::ldexp.Tensor(Tensor self, Tensor other) -> Tensor", boxed<cpu::ldexp>},
    {"aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", boxed<cpu::lerp_number>},
    {"aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", boxed<cpu::lerp>},
    {"aten::linalg__powsum(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", boxed<cpu::linalg__powsum>},
    {"aten::log(Tensor self) -> Tensor", boxed<cpu::log>},
    {"aten::log10(Tensor self) -> Tensor", boxed<cpu::log10>},
    {"aten::log1p(Tensor self) -> Tensor", boxed<cpu::log1p>},
    {"aten::log2(Tensor self) -> Tensor", boxed<cpu::log2>},
    {"aten::logical_and(Tensor self, Tensor other) -> Tensor", boxed<cpu::logical_and>},
    {"aten::logical_not(Tensor self) -> Tensor", boxed<cpu::logical_not>},
    {"aten::logical_or(Tensor self, Tensor other) -> Tensor", boxed<cpu::logical_or>},
    {"aten::logical_xor(Tensor self, Tensor other) -> Tensor", boxed<cpu::logical_xor>},
    {"aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", boxed<cpu::masked_fill_number>},
    {"aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", boxed<cpu::masked_fill>},
    {"aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", boxed<mean_all>},
    {"aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", boxed<cpu::mean>},
    {"aten::mvlgamma(Tensor self, int p) -> Tensor", boxed<cpu::mvlgamma>},
    {"aten::ne.Scalar(Tensor self, Scalar other) -> Tensor", boxed<cpu::ne_number>},
    {"aten::ne.Tensor(Tensor self, Tensor other) -> Tensor", boxed<cpu::ne>},
    {"aten::neg(Tensor self) -> Tensor", boxed<cpu::neg>},
    {"aten::nextafter(Tensor self, Tensor other) -> Tensor", boxed<cpu::nextafter>},
    {"aten::polygamma(int n, Tensor self) -> Tensor", boxed<cpu::polygamma>},
    {"aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor", boxed<cpu::number_power>},
    {"aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", boxed<cpu::power_number>},
    {"aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", boxed<prod_all>},
    {"aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", boxed<prod_dim>},
    {"aten::reciprocal(Tensor self) -> Tensor", boxed<cpu::reciprocal>},
    {"aten::rsqrt(Tensor self) -> Tensor", boxed<cpu::rsqrt>},
    {"aten::sgn(Tensor self) -> Tensor", boxed<cpu::sgn>},
    {"aten::sigmoid(Tensor self) -> Tensor", boxed<cpu::sigmoid>},
    {"aten::silu(Tensor self) -> Tensor", boxed<cpu::silu>},
    {"aten::sin(Tensor self) -> Tensor", boxed<cpu::sin>},
    {"aten::sinh(Tensor self) -> Tensor", boxed<cpu::sinh>},
    {"aten::special_airy_ai(Tensor x) -> Tensor", boxed<cpu::special_airy_ai>},
    {"aten::special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor", boxed<cpu::special_chebyshev_polynomial_t>},
    {"aten::special_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor", boxed<of_degree<cpu::special_chebyshev_polynomial_t>>},
    {"aten::special_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor", boxed<of_number<cpu::special_chebyshev_polynomial_t>>},
    {"aten::special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor", boxed<cpu::special_chebyshev_polynomial_u>},
    {"aten::special_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor", boxed<of_degree<cpu::special_chebyshev_polynomial_u>>},
    {"aten::special_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor", boxed<of_number<cpu::special_chebyshev_polynomial_u>>},
    {"aten::special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor", boxed<cpu::special_chebyshev_polynomial_v>},
    {"aten::special_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor", boxed<of_degree<cpu::special_chebyshev_polynomial_v>>},
    {"aten::special_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor", boxed<of_number<cpu::special_chebyshev_polynomial_v>>},
    {"aten::special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor", boxed<cpu::special_chebyshev_polynomial_w>},
    {"aten::special_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor", boxed<of_degree<cpu::special_chebyshev_polynomial_w>>},
    {"aten::special_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor", boxed<of_number<cpu::special_chebyshev_polynomial_w>>},
    {"aten::special_erfcx(Tensor self) -> Tensor", boxed<cpu::special_erfcx>},
    {"aten::special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor", boxed<cpu::special_hermite_polynomial_h>},
    {"aten::special_hermite_polynomial_h.n_scalar(Tensor x, Scalar n) -> Tensor", boxed<of_degree<cpu::special_hermite_polynomial_h>>},
    {"aten::special_hermite_polynomial_h.x_scalar(Scalar x, Tensor n) -> Tensor", boxed<of_number<cpu::special_hermite_polynomial_h>>},
    {"aten::special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor", boxed<cpu::special_hermite_polynomial_he>},
    {"aten::special_hermite_polynomial_he.n_scalar(Tensor x, Scalar n) -> Tensor", boxed<of_degree<cpu::special_hermite_polynomial_he>>},
    {"aten::special_hermite_polynomial_he.x_scalar(Scalar x, Tensor n) -> Tensor", boxed<of_number<cpu::special_hermite_polynomial_he>>},
    {"aten::special_i0e(Tensor self) -> Tensor", boxed<cpu::special_i0e>},
    {"aten::special_i1(Tensor self) -> Tensor", boxed<cpu::special_i1>},
    {"aten::special_i1e(Tensor self) -> Tensor", boxed<cpu::special_i1e>},
    {"aten::special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor", boxed<cpu::special_laguerre_polynomial_l>},
    {"aten::special_laguerre_polynomial_l.n_scalar(Tensor x, Scalar n) -> Tensor", boxed<of_degree<cpu::special_laguerre_polynomial_l>>},
    {"aten::special_laguerre_polynomial_l.x_scalar(Scalar x, Tensor n) -> Tensor", boxed<of_number<cpu::special_laguerre_polynomial_l>>},
    {"aten::special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor", boxed<cpu::special_legendre_polynomial_p>},
    {"aten::special_legendre_polynomial_p.n_scalar(Tensor x, Scalar n) -> Tensor", boxed<of_degree<cpu::special_legendre_polynomial_p>>},
    {"aten::special_legendre_polynomial_p.x_scalar(Scalar x, Tensor n) -> Tensor", boxed<of_number<cpu::special_legendre_polynomial_p>>},
    {"aten::special_log_ndtr(Tensor self) -> Tensor", boxed<cpu::special_log_ndtr>},
    {"aten::special_modified_bessel_k0(Tensor self) -> Tensor", boxed<cpu::special_modified_bessel_k0>},
    {"aten::special_modified_bessel_k1(Tensor self) -> Tensor", boxed<cpu::special_modified_bessel_k1>},
    {"aten::special_ndtri(Tensor self) -> Tensor", boxed<cpu::special_ndtri>},
    {"aten::special_scaled_modified_bessel_k0(Tensor x) -> Tensor", boxed<cpu::special_scaled_modified_bessel_k0>},
    {"aten::special_scaled_modified_bessel_k1(Tensor x) -> Tensor", boxed<cpu::special_scaled_modified_bessel_k1>},
    {"aten::special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor", boxed<cpu::special_shifted_chebyshev_polynomial_t>},
    {"aten::special_shifted_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor", boxed<of_degree<cpu::special_shifted_chebyshev_polynomial_t>>},
    {"aten::special_shifted_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor", boxed<of_number<cpu::special_shifted_chebyshev_polynomial_t>>},
    {"aten::special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor", boxed<cpu::special_shifted_chebyshev_polynomial_u>},
    {"aten::special_shifted_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor", boxed<of_degree<cpu::special_shifted_chebyshev_polynomial_u>>},
    {"aten::special_shifted_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor", boxed<of_number<cpu::special_shifted_chebyshev_polynomial_u>>},
    {"aten::special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor", boxed<cpu::special_shifted_chebyshev_polynomial_v>},
    {"aten::special_shifted_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor", boxed<of_degree<cpu::special_shifted_chebyshev_polynomial_v>>},
    {"aten::special_shifted_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor", boxed<of_number<cpu::special_shifted_chebyshev_polynomial_v>>},
    {"aten::special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor", boxed<cpu::special_shifted_chebyshev_polynomial_w>},
    {"aten::special_shifted_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor", boxed<of_degree<cpu::special_shifted_chebyshev_polynomial_w>>},
    {"aten::special_shifted_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor", boxed<of_number<cpu::special_shifted_chebyshev_polynomial_w>>},
    {"aten::special_spherical_bessel_j0(Tensor x) -> Tensor", boxed<cpu::special_spherical_bessel_j0>},
    {"aten::special_xlog1py(Tensor self, Tensor other) -> Tensor", boxed<cpu::special_xlog1py>},
    {"aten::special_zeta(Tensor self, Tensor other) -> Tensor", boxed<cpu::special_zeta>},
    {"aten::sqrt(Tensor self) -> Tensor", boxed<cpu::sqrt>},
    {"aten::tan(Tensor self) -> Tensor", boxed<cpu::tan>},
    {"aten::tanh(Tensor self) -> Tensor", boxed<cpu::tanh>},
    {"aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor", boxed<cpu::var>},
    {"aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)", boxed<cpu::var_mean>},
    {"aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", boxed<cpu::where>},
};
// clang-format on

}  // namespace

std::span<const AtenRow> aten_function_rows() { return kRows; }

}  // namespace sconce::custom_ops
