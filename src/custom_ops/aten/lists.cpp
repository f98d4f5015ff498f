// Operators on lists of tensors, one tensor at a time.
#include "sconce/check.h"
#include "sconce/float_types.h"
#include "src/cpu/elementwise/arithmetic.h"
#include "src/cpu/elementwise/binary_functions.h"
#include "src/cpu/elementwise/comparisons.h"
#include "src/cpu/elementwise/functions.h"
#include "src/cpu/matmul/products.h"
#include "src/cpu/movement/movement.h"
#include "src/cpu/reduction/norms.h"
#include "src/custom_ops/aten/aten.h"
#include "src/custom_ops/operator/boxed.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/fill.h"

namespace sconce::custom_ops {
namespace {

using Tensors = std::vector<Tensor>;
using Scalars = std::span<const Scalar>;

void check_lengths(size_t a, size_t b) {
  SCONCE_CHECK(a == b, kInvalidArgument, "Tensor lists must have the same number of tensors, got ", a, " and ", b);
}
template <class F>
Tensors mapped(const TensorList& self, const F& f) {
  SCONCE_CHECK(self.size() > 0, kInvalidArgument, "Tensor list must have at least one tensor.");
  Tensors results;
  results.reserve(self.size());
  for (size_t i = 0; i < self.size(); ++i) results.push_back(f(self[i], i));
  return results;
}

// Each loop is compiled once; the templates below only name its function.
using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);
using Scaled = Tensor (*)(const Tensor&, const Tensor&, Scalar);
using Numbered = Tensor (*)(const Tensor&, Scalar);
using Ternary = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, Scalar);

Tensors each_of(TensorList self, Unary function) {
  return mapped(self, [&](const Tensor& tensor, size_t) { return function(tensor); });
}
Tensors with_list_of(TensorList self, TensorList other, Binary function) {
  check_lengths(self.size(), other.size());
  return mapped(self, [&](const Tensor& tensor, size_t i) { return function(tensor, other[i]); });
}
Tensors with_scaled_list_of(TensorList self, TensorList other, Scalar alpha, Scaled function) {
  check_lengths(self.size(), other.size());
  return mapped(self, [&](const Tensor& tensor, size_t i) { return function(tensor, other[i], alpha); });
}
Tensors with_number_of(TensorList self, Scalar number, Numbered function) {
  return mapped(self, [&](const Tensor& tensor, size_t) { return function(tensor, number); });
}
Tensors with_numbers_of(TensorList self, Scalars numbers, Numbered function) {
  check_lengths(self.size(), numbers.size());
  return mapped(self, [&](const Tensor& tensor, size_t i) { return function(tensor, numbers[i]); });
}
Tensors ternary_of(TensorList self, TensorList first, TensorList second, Scalar number, Ternary function) {
  check_lengths(self.size(), first.size());
  check_lengths(self.size(), second.size());
  return mapped(self, [&](const Tensor& tensor, size_t i) { return function(tensor, first[i], second[i], number); });
}
Tensors ternary_each_of(TensorList self, TensorList first, TensorList second, Scalars numbers, Ternary function) {
  check_lengths(self.size(), first.size());
  check_lengths(self.size(), second.size());
  check_lengths(self.size(), numbers.size());
  return mapped(self,
                [&](const Tensor& tensor, size_t i) { return function(tensor, first[i], second[i], numbers[i]); });
}

template <Unary kFunction>
Tensors each(TensorList self) {
  return each_of(self, kFunction);
}
template <Binary kFunction>
Tensors with_list(TensorList self, TensorList other) {
  return with_list_of(self, other, kFunction);
}
template <Scaled kFunction>
Tensors with_scaled_list(TensorList self, TensorList other, Scalar alpha) {
  return with_scaled_list_of(self, other, alpha, kFunction);
}
template <Numbered kFunction>
Tensors with_number(TensorList self, Scalar number) {
  return with_number_of(self, number, kFunction);
}
template <Numbered kFunction>
Tensors with_numbers(TensorList self, Scalars numbers) {
  return with_numbers_of(self, numbers, kFunction);
}
template <Ternary kFunction>
Tensors ternary(TensorList self, TensorList first, TensorList second, Scalar number) {
  return ternary_of(self, first, second, number, kFunction);
}
template <Ternary kFunction>
Tensors ternary_each(TensorList self, TensorList first, TensorList second, Scalars numbers) {
  return ternary_each_of(self, first, second, numbers, kFunction);
}

Tensor add_number(const Tensor& self, Scalar number) { return cpu::add_number(self, number, Scalar(int64_t{1})); }
Tensor subtract_number(const Tensor& self, Scalar number) {
  return cpu::subtract_number(self, number, Scalar(int64_t{1}));
}
Tensor zeros_of(const Tensor& self) {
  Tensor out = empty_like(self);
  zero(out);
  return out;
}
Tensors lerp(TensorList self, TensorList ends, TensorList weights) {
  check_lengths(self.size(), ends.size());
  check_lengths(self.size(), weights.size());
  return mapped(self, [&](const Tensor& tensor, size_t i) { return cpu::lerp(tensor, ends[i], weights[i]); });
}
// The numbers are in a 1d tensor, one for each tensor of the list.
std::vector<Scalar> unpacked(const Tensor& numbers, size_t count) {
  SCONCE_CHECK(numbers.dim() == 1 && static_cast<size_t>(numbers.size(0)) == count, kInvalidArgument,
               "Expected packed scalar Tensor to be of one dimension and length ", count, ", got ", describe(numbers));
  std::vector<Scalar> each;
  if (is_complex(numbers.dtype())) {
    const Tensor wide = contiguous(to_dtype(numbers, DType::kComplex128));
    for (int64_t i = 0; i < wide.numel(); ++i)
      each.emplace_back(std::complex<double>(wide.data_as<ComplexDouble>()[i]));
  } else if (is_integral(numbers.dtype(), true)) {
    const Tensor wide = contiguous(to_dtype(numbers, DType::kInt64));
    for (int64_t i = 0; i < wide.numel(); ++i) each.emplace_back(wide.data_as<int64_t>()[i]);
  } else {
    const Tensor wide = contiguous(to_dtype(numbers, DType::kFloat64));
    for (int64_t i = 0; i < wide.numel(); ++i) each.emplace_back(wide.data_as<double>()[i]);
  }
  return each;
}
template <Ternary kFunction>
Tensors ternary_tensor(TensorList self, TensorList first, TensorList second, const Tensor& numbers) {
  return ternary_each_of(self, first, second, unpacked(numbers, self.size()), kFunction);
}
using Norm = Tensor (*)(const Tensor&, Scalar, std::optional<IntSpan>, bool, OptType);
template <Norm kFunction>
Tensors norms(TensorList self, Scalar order, OptType dtype) {
  return mapped(self,
                [&](const Tensor& tensor, size_t) { return kFunction(tensor, order, std::nullopt, false, dtype); });
}
Tensor largest(const Tensor& self) { return cpu::amax(self, {}, false); }
Tensors clones(TensorList self, OptEnum memory_format) {
  return mapped(self, [&](const Tensor& tensor, size_t) { return cpu::clone_in_format(tensor, memory_format); });
}
Tensors copies(TensorList self, TensorList src, bool) { return with_list<cpu::copied>(self, src); }
Tensors number_powers(Scalar self, TensorList exponents) {
  return mapped(exponents, [&](const Tensor& exponent, size_t) { return cpu::number_power(self, exponent); });
}

// clang-format off
constexpr AtenRow kRows[] = {
    {"aten::_foreach_abs(Tensor[] self) -> Tensor[]", boxed<each<cpu::abs>>},
    {"aten::_foreach_acos(Tensor[] self) -> Tensor[]", boxed<each<cpu::acos>>},
    {"aten::_foreach_add.List(Tensor[] self, Tensor[] other, *, Scalar alpha=1) -> Tensor[]", boxed<with_scaled_list<cpu::add>>},
    {"aten::_foreach_add.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", boxed<with_number<add_number>>},
    {"aten::_foreach_add.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", boxed<with_numbers<add_number>>},
    {"aten::_foreach_addcdiv.Scalar(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1) -> Tensor[]", boxed<ternary<cpu::addcdiv>>},
    {"aten::_foreach_addcdiv.ScalarList(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars) -> Tensor[]", boxed<ternary_each<cpu::addcdiv>>},
    {"aten::_foreach_addcdiv.Tensor(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars) -> Tensor[]", boxed<ternary_tensor<cpu::addcdiv>>},
    {"aten::_foreach_addcmul.Scalar(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1) -> Tensor[]", boxed<ternary<cpu::addcmul>>},
    {"aten::_foreach_addcmul.ScalarList(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars) -> Tensor[]", boxed<ternary_each<cpu::addcmul>>},
    {"aten::_foreach_addcmul.Tensor(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars) -> Tensor[]", boxed<ternary_tensor<cpu::addcmul>>},
    {"aten::_foreach_asin(Tensor[] self) -> Tensor[]", boxed<each<cpu::asin>>},
    {"aten::_foreach_atan(Tensor[] self) -> Tensor[]", boxed<each<cpu::atan>>},
    {"aten::_foreach_ceil(Tensor[] self) -> Tensor[]", boxed<each<cpu::ceil>>},
    {"aten::_foreach_clamp_max.List(Tensor[] self, Tensor[] other) -> Tensor[]", boxed<with_list<cpu::clamp_max_tensor>>},
    {"aten::_foreach_clamp_max.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", boxed<with_number<cpu::clamp_max>>},
    {"aten::_foreach_clamp_max.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", boxed<with_numbers<cpu::clamp_max>>},
    {"aten::_foreach_clamp_min.List(Tensor[] self, Tensor[] other) -> Tensor[]", boxed<with_list<cpu::clamp_min_tensor>>},
    {"aten::_foreach_clamp_min.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", boxed<with_number<cpu::clamp_min>>},
    {"aten::_foreach_clamp_min.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", boxed<with_numbers<cpu::clamp_min>>},
    {"aten::_foreach_clone(Tensor[] self, *, MemoryFormat? memory_format=None) -> Tensor[]", boxed<clones>},
    {"aten::_foreach_copy(Tensor[] self, Tensor[] src, bool non_blocking=False) -> Tensor[] self_out", boxed<copies>},
    {"aten::_foreach_cos(Tensor[] self) -> Tensor[]", boxed<each<cpu::cos>>},
    {"aten::_foreach_cosh(Tensor[] self) -> Tensor[]", boxed<each<cpu::cosh>>},
    {"aten::_foreach_div.List(Tensor[] self, Tensor[] other) -> Tensor[]", boxed<with_list<cpu::divide>>},
    {"aten::_foreach_div.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", boxed<with_number<cpu::divide_number>>},
    {"aten::_foreach_div.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", boxed<with_numbers<cpu::divide_number>>},
    {"aten::_foreach_erf(Tensor[] self) -> Tensor[]", boxed<each<cpu::erf>>},
    {"aten::_foreach_erfc(Tensor[] self) -> Tensor[]", boxed<each<cpu::erfc>>},
    {"aten::_foreach_exp(Tensor[] self) -> Tensor[]", boxed<each<cpu::exp>>},
    {"aten::_foreach_expm1(Tensor[] self) -> Tensor[]", boxed<each<cpu::expm1>>},
    {"aten::_foreach_floor(Tensor[] self) -> Tensor[]", boxed<each<cpu::floor>>},
    {"aten::_foreach_frac(Tensor[] self) -> Tensor[]", boxed<each<cpu::frac>>},
    {"aten::_foreach_lerp.List(Tensor[] self, Tensor[] tensors1, Tensor[] weights) -> Tensor[]", boxed<lerp>},
    {"aten::_foreach_lgamma(Tensor[] self) -> Tensor[]", boxed<each<cpu::lgamma>>},
    {"aten::_foreach_log(Tensor[] self) -> Tensor[]", boxed<each<cpu::log>>},
    {"aten::_foreach_log10(Tensor[] self) -> Tensor[]", boxed<each<cpu::log10>>},
    {"aten::_foreach_log1p(Tensor[] self) -> Tensor[]", boxed<each<cpu::log1p>>},
    {"aten::_foreach_log2(Tensor[] self) -> Tensor[]", boxed<each<cpu::log2>>},
    {"aten::_foreach_max(Tensor[] self) -> Tensor[]", boxed<each<largest>>},
    {"aten::_foreach_maximum.List(Tensor[] self, Tensor[] other) -> Tensor[]", boxed<with_list<cpu::maximum>>},
    {"aten::_foreach_maximum.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", boxed<with_number<cpu::clamp_min>>},
    {"aten::_foreach_maximum.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", boxed<with_numbers<cpu::clamp_min>>},
    {"aten::_foreach_minimum.List(Tensor[] self, Tensor[] other) -> Tensor[]", boxed<with_list<cpu::minimum>>},
    {"aten::_foreach_minimum.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", boxed<with_number<cpu::clamp_max>>},
    {"aten::_foreach_minimum.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", boxed<with_numbers<cpu::clamp_max>>},
    {"aten::_foreach_mm(Tensor[] self, Tensor[] mat2) -> Tensor[]", boxed<with_list<cpu::mm>>},
    {"aten::_foreach_mul.List(Tensor[] self, Tensor[] other) -> Tensor[]", boxed<with_list<cpu::multiply>>},
    {"aten::_foreach_mul.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", boxed<with_number<cpu::multiply_number>>},
    {"aten::_foreach_mul.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", boxed<with_numbers<cpu::multiply_number>>},
    {"aten::_foreach_neg(Tensor[] self) -> Tensor[]", boxed<each<cpu::neg>>},
    {"aten::_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]", boxed<norms<cpu::linalg_vector_norm>>},
    {"aten::_foreach_pow.List(Tensor[] self, Tensor[] exponent) -> Tensor[]", boxed<with_list<cpu::pow_Tensor_Tensor>>},
    {"aten::_foreach_pow.Scalar(Tensor[] self, Scalar exponent) -> Tensor[]", boxed<with_number<cpu::power_number>>},
    {"aten::_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]", boxed<number_powers>},
    {"aten::_foreach_pow.ScalarList(Tensor[] self, Scalar[] exponent) -> Tensor[]", boxed<with_numbers<cpu::power_number>>},
    {"aten::_foreach_powsum.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]", boxed<norms<cpu::linalg__powsum>>},
    {"aten::_foreach_reciprocal(Tensor[] self) -> Tensor[]", boxed<each<cpu::reciprocal>>},
    {"aten::_foreach_round(Tensor[] self) -> Tensor[]", boxed<each<cpu::round>>},
    {"aten::_foreach_rsqrt(Tensor[] self) -> Tensor[]", boxed<each<cpu::rsqrt>>},
    {"aten::_foreach_sigmoid(Tensor[] self) -> Tensor[]", boxed<each<cpu::sigmoid>>},
    {"aten::_foreach_sign(Tensor[] self) -> Tensor[]", boxed<each<cpu::sign>>},
    {"aten::_foreach_sin(Tensor[] self) -> Tensor[]", boxed<each<cpu::sin>>},
    {"aten::_foreach_sinh(Tensor[] self) -> Tensor[]", boxed<each<cpu::sinh>>},
    {"aten::_foreach_sqrt(Tensor[] self) -> Tensor[]", boxed<each<cpu::sqrt>>},
    {"aten::_foreach_sub.List(Tensor[] self, Tensor[] other, *, Scalar alpha=1) -> Tensor[]", boxed<with_scaled_list<cpu::subtract>>},
    {"aten::_foreach_sub.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", boxed<with_number<subtract_number>>},
    {"aten::_foreach_sub.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", boxed<with_numbers<subtract_number>>},
    {"aten::_foreach_tan(Tensor[] self) -> Tensor[]", boxed<each<cpu::tan>>},
    {"aten::_foreach_tanh(Tensor[] self) -> Tensor[]", boxed<each<cpu::tanh>>},
    {"aten::_foreach_trunc(Tensor[] self) -> Tensor[]", boxed<each<cpu::trunc>>},
    {"aten::_foreach_zero(Tensor[] self) -> Tensor[] self_out", boxed<each<zeros_of>>},
};
// clang-format on

}  // namespace

std::span<const AtenRow> aten_list_rows() { return kRows; }

}  // namespace sconce::custom_ops
