#include "src/cpu/elementwise/binary_functions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <type_traits>

#include "sconce/check.h"
#include "src/cpu/elementwise/computed.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/multiply.h"
#include "src/tensor/elementwise.h"
#include "src/tensor/fill.h"
#include "src/tensor/inspection.h"
#include "src/tensor/rules/arithmetic.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

Tensor divide(const Tensor& self, const Tensor& other, DType dtype) {
  dtype = floating_result(dtype);
  Tensor out = make_result("div", {&self, &other}, dtype, dtype);
  const Tensor a = met(self, dtype), b = met_divisor(other, dtype);
  dispatch_inexact(dtype, "div", [&]<class T>() -> void {
    map_elements<T, T, T>("div", out, [](T x, T y) { return quotient(x, y); }, {&a, &b});
  });
  return out;
}

struct Compare {
  bool equal;
  template <class T>
  bool operator()(T a, T b) const {
    return (a == b) == equal;
  }
};
// A dtype that dispatch_any supports and that represents every element of the dtype exactly.
DType comparable(DType dtype) {
  if (is_float8(dtype)) return DType::kFloat32;
  if (dtype == DType::kUInt16) return DType::kInt32;
  return dtype == DType::kUInt32 || dtype == DType::kUInt64 ? DType::kInt64 : dtype;
}
Tensor compare(const char* name, const Tensor& self, const Tensor& other, DType dtype, bool equal) {
  Tensor out = make_result(name, {&self, &other}, dtype, DType::kBool);
  const Tensor a = met(self, dtype), b = met(other, dtype);
  dispatch_any(comparable(dtype), name, [&]<class T>() -> void {
    map_elements<bool, T, T>(name, out, Compare{equal}, {&a, &b});
  });
  return out;
}

// The tensor as bool: every number but zero is true.
Tensor truth(const Tensor& tensor) { return to_dtype(tensor, DType::kBool); }
template <class F>
Tensor logical(const char* name, const Tensor& self, const Tensor& other, F f) {
  const DType dtype = ResultType().add(self).add(other).get();
  Tensor out = make_result(name, {&self, &other}, dtype, DType::kBool);
  const Tensor a = truth(self), b = truth(other);
  map_elements<bool, bool, bool>(name, out, f, {&a, &b});
  return out;
}

// An integer type of the size, to move elements as.
DType carrier(DType dtype) {
  switch (dtype_bytes(dtype)) {
    case 1:
      return DType::kUInt8;
    case 2:
      return DType::kInt16;
    case 4:
      return DType::kInt32;
    case 8:
      return DType::kInt64;
    default:
      return DType::kComplex128;
  }
}
void choose(const char* name, Tensor& out, const Tensor& condition, const Tensor& yes, const Tensor& no) {
  const DType as = carrier(out.dtype());
  const Tensor flags = condition.dtype() == DType::kBool ? view_dtype(condition, DType::kUInt8) : condition;
  const Tensor a = view_dtype(yes, as), b = view_dtype(no, as);
  Tensor to = view_dtype(out, as);
  detail::dispatch_list<DType::kInt32, DType::kInt64, DType::kInt16, DType::kUInt8, DType::kComplex128>(
      as, name, [&]<class T>() -> void {
        map_elements<T, uint8_t, T, T>(name, to, [](uint8_t flag, T x, T y) { return flag ? x : y; }, {&flags, &a, &b});
      });
}

struct Between {
  template <class T>
  T operator()(T a, T b, T weight) const {
    const bool near = std::abs(weight) < 0.5;
    const T from_a = a + multiply(weight, T(b - a)), from_b = b - multiply(T(b - a), T(T(1) - weight));
    return near ? from_a : from_b;
  }
};

void check_same(const char* name, const Tensor& a, const Tensor& b) {
  SCONCE_CHECK(a.dtype() == b.dtype(), kInvalidArgument, name, ": expected dtype ", dtype_name(a.dtype()),
               " for `end` but got dtype ", dtype_name(b.dtype()));
}

}  // namespace

Tensor divide(const Tensor& self, const Tensor& other) {
  return divide(self, other, ResultType().add(self).add(other).get());
}
Tensor divide_number(const Tensor& self, Scalar other) {
  return divide(self, number_tensor(other), ResultType().add(self).add_number(other).get());
}

Tensor complex(const Tensor& real, const Tensor& imag) {
  const DType dtype = real.dtype();
  const DType result = complex_dtype("complex", real, imag);
  Tensor out = make_result("complex", {&real, &imag}, dtype, result);
  if (dtype == DType::kFloat64)
    map_elements<ComplexDouble, double, double>("complex", out, [](double x, double y) { return ComplexDouble(x, y); },
                                                {&real, &imag});
  else
    map_elements<ComplexFloat, float, float>("complex", out, [](float x, float y) { return ComplexFloat(x, y); },
                                             {&real, &imag});
  return out;
}

Tensor eq(const Tensor& self, const Tensor& other) {
  return compare("eq", self, other, ResultType().add(self).add(other).get(), true);
}
Tensor eq_number(const Tensor& self, Scalar other) {
  return compare("eq", self, number_tensor(other), ResultType().add(self).add_number(other).get(), true);
}
Tensor ne(const Tensor& self, const Tensor& other) {
  return compare("ne", self, other, ResultType().add(self).add(other).get(), false);
}
Tensor ne_number(const Tensor& self, Scalar other) {
  return compare("ne", self, number_tensor(other), ResultType().add(self).add_number(other).get(), false);
}
Tensor logical_and(const Tensor& self, const Tensor& other) {
  return logical("logical_and", self, other, [](bool a, bool b) { return a && b; });
}
Tensor logical_or(const Tensor& self, const Tensor& other) {
  return logical("logical_or", self, other, [](bool a, bool b) { return a || b; });
}
Tensor logical_xor(const Tensor& self, const Tensor& other) {
  return logical("logical_xor", self, other, [](bool a, bool b) { return a != b; });
}

Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other) {
  SCONCE_CHECK(condition.dtype() == DType::kBool || condition.dtype() == DType::kUInt8, kInvalidArgument,
               "where: expected condition to be a boolean tensor, but got a tensor with dtype ",
               dtype_name(condition.dtype()));
  const DType dtype = ResultType().add(self).add(other).get();
  const Tensor a = to_dtype(self, dtype), b = to_dtype(other, dtype);
  const Shape shape = broadcast_shapes("where", broadcast_shapes("where", condition.sizes(), a.sizes()), b.sizes());
  const Tensor* const operands[] = {&condition, &a, &b};  // none is converted on the way
  Tensor out = Tensor::empty_strided(shape, elementwise_strides(shape, operands), dtype);
  choose("where", out, condition, a, b);
  return out;
}

namespace {

// value.item() as a number of another dtype: fractions are cut, what does not fit is an error.
Tensor element_of(const Tensor& value, DType dtype) {
  Tensor element = Tensor::empty({}, dtype);
  const ScalarValue number = item(value);
  if (number.kind == ScalarValue::Kind::kComplex)
    fill(element, std::complex<double>(number.real, number.imag));
  else if (number.kind == ScalarValue::Kind::kReal)
    fill(element, number.real);
  else if (number.kind == ScalarValue::Kind::kSigned)
    fill(element, number.i);
  else
    element = to_dtype(value, dtype);
  return element;
}

}  // namespace

Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value) {
  SCONCE_CHECK(value.dim() == 0, kInvalidArgument,
               "masked_fill: masked_fill only supports a 0-dimensional value tensor, but got tensor with ", value.dim(),
               " dimension(s).");
  SCONCE_CHECK(mask.dtype() == DType::kBool, kInvalidArgument,
               "masked_fill: masked_fill_ only supports boolean masks, but got mask with dtype ",
               dtype_name(mask.dtype()));
  const Shape sizes = broadcast_shapes("masked_fill", self.sizes(), mask.sizes());
  Tensor out = clone_contiguous(expand("masked_fill", self, sizes));
  const Tensor element = element_of(value, self.dtype());
  choose("masked_fill", out, mask, element, out);
  return out;
}
Tensor masked_fill_number(const Tensor& self, const Tensor& mask, Scalar value) {
  Tensor element = Tensor::empty({}, self.dtype());
  fill(element, value);
  return masked_fill(self, mask, element);
}

namespace {

Tensor lerp_as(const Tensor& self, const Tensor& end, const Tensor& weight, DType dtype) {
  check_same("lerp", self, end);
  Tensor out = make_result("lerp", {&self, &end, &weight}, dtype, dtype);
  dispatch_inexact(dtype, "lerp", [&]<class T>() -> void {
    map_elements<T, T, T, T>("lerp", out, in_lanes<T>(Between()), {&self, &end, &weight});
  });
  return out;
}

}  // namespace

Tensor lerp(const Tensor& self, const Tensor& end, const Tensor& weight) {
  SCONCE_CHECK(weight.dim() == 0 || weight.dtype() == self.dtype(), kInvalidArgument, "lerp: expected dtype ",
               dtype_name(self.dtype()), " for `weight` but got dtype ", dtype_name(weight.dtype()));
  return lerp_as(self, end, weight, ResultType().add(self).add(end).add(weight).get());
}
Tensor lerp_number(const Tensor& self, const Tensor& end, Scalar weight) {
  return lerp_as(self, end, number_tensor(weight), self.dtype());
}

Tensor addcmul(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, Scalar value) {
  const DType dtype = ResultType().add(self).add(tensor1).add(tensor2).get();
  Tensor out = make_result("addcmul", {&self, &tensor1, &tensor2}, dtype, dtype);
  const Tensor x = met(self, dtype), first = met(tensor1, dtype), second = met(tensor2, dtype);
  dispatch_any(dtype, "addcmul", [&]<class T>() -> void {
    const T by = number_as<T>(value);
    const auto f = [by](T to, T a, T b) { return static_cast<T>(to + multiply(multiply(by, a), b)); };
    map_elements<T, T, T, T>("addcmul", out, in_lanes<T>(f), {&x, &first, &second});
  });
  return out;
}
Tensor addcdiv(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, Scalar value) {
  SCONCE_CHECK(!is_integral(tensor1.dtype(), true) || !is_integral(tensor2.dtype(), true), kInvalidArgument,
               "addcdiv: Integer division with addcdiv is no longer supported");
  const DType dtype = ResultType().add(self).add(tensor1).add(tensor2).get();
  Tensor out = make_result("addcdiv", {&self, &tensor1, &tensor2}, dtype, dtype);
  const Tensor x = met(self, dtype), first = met(tensor1, dtype), second = met(tensor2, dtype);
  dispatch_inexact(dtype, "addcdiv", [&]<class T>() -> void {
    const T by = number_as<T>(value);
    const auto f = [by](T to, T a, T b) { return to + quotient(multiply(by, a), b); };
    map_elements<T, T, T, T>("addcdiv", out, in_lanes<T>(f), {&x, &first, &second});
  });
  return out;
}

Tensor ldexp(const Tensor& self, const Tensor& other) {
  if (is_floating(self.dtype()) && is_integral(other.dtype(), true)) {
    // Exact for whole exponents, in the dtype of the first operand.
    const Shape shape = broadcast_shapes("ldexp", self.sizes(), other.sizes());
    Tensor out = std::ranges::equal(IntSpan(shape), self.sizes())
                     ? empty_like(self)
                     : make_result("ldexp", {&self, &other}, self.dtype(), self.dtype());
    dispatch_computed_float(self.dtype(), "ldexp", [&]<class T>() -> void {
      const auto f = [](T x, int64_t n) -> T {
        constexpr int64_t kMost = 5000;  // beyond, every number of the type is infinite, or 0
        return std::ldexp(x, static_cast<int>(std::clamp(n, -kMost, kMost)));
      };
      map_elements<T, T, int64_t>("ldexp", out, f, {&self, &other});
    });
    return out;
  }
  const DType dtype = self.dtype();
  Tensor two = number_tensor(Scalar(2.0));
  if (!is_integral(dtype, true) && dtype != DType::kFloat32) {
    two = to_dtype(two, dtype);
    return mul_Tensor(self, pow_Tensor_Tensor(two, other));
  }
  return mul_Tensor(self, number_power(Scalar(2.0), other));
}

Tensor nextafter(const Tensor& self, const Tensor& other) {
  const DType dtype = ResultType().add(self).add(other).get();
  Tensor out = make_result("nextafter", {&self, &other}, dtype, dtype);
  if (dtype == DType::kBFloat16 || dtype == DType::kFloat16) {
    const unsigned infinity = dtype == DType::kFloat16 ? 0x7C00u : 0x7F80u;
    // On bits: sign and magnitude. The neighbour of zero is the smallest number of the other's sign.
    const Tensor a = view_dtype(to_dtype(self, dtype), DType::kInt16),
                 b = view_dtype(to_dtype(other, dtype), DType::kInt16);
    Tensor to = view_dtype(out, DType::kInt16);
    map_elements<int16_t, int16_t, int16_t>("nextafter", to,
                                            [infinity](int16_t from, int16_t towards) -> int16_t {
                                              const auto x = static_cast<uint16_t>(from),
                                                         y = static_cast<uint16_t>(towards);
                                              const unsigned size_x = x & 0x7FFFu, size_y = y & 0x7FFFu;
                                              if (size_x > infinity) return from;
                                              if (size_y > infinity || x == y || (size_x == 0 && size_y == 0))
                                                return towards;
                                              if (size_x == 0) return static_cast<int16_t>((y & 0x8000u) | 1u);
                                              const bool away = size_y > size_x && (x & 0x8000u) == (y & 0x8000u);
                                              return static_cast<int16_t>(away ? x + 1u : x - 1u);
                                            },
                                            {&a, &b});
    return out;
  }
  dispatch_float_double(dtype, "nextafter", [&]<class T>() -> void {
    map_elements<T, T, T>("nextafter", out,
                          [](T from, T towards) -> T {
                            using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
                            constexpr Bits kSign = std::numeric_limits<Bits>::min();
                            const auto x = std::bit_cast<Bits>(from), y = std::bit_cast<Bits>(towards);
                            // The step leads away from zero if `towards` is the larger number of the same sign.
                            const bool away = (towards > from) == (x >= 0);
                            const Bits next = (x & ~kSign) == 0 ? (y & kSign) | 1 : away ? x + 1 : x - 1;
                            const T neighbour = from == towards ? towards : std::bit_cast<T>(next);
                            return from != from || towards != towards ? from + towards : neighbour;
                          },
                          {&self, &other});
  });
  return out;
}

Tensor shrink_backward(const Tensor& grad_output, const Tensor& self, Scalar lambd) {
  const DType dtype = ResultType().add(grad_output).add(self).get();
  Tensor out = make_result("shrink_backward", {&grad_output, &self}, dtype, dtype);
  const auto run = [&]<class T>() -> void {
    T bound;
    const Tensor number = to_dtype(number_tensor(Scalar(lambd.to_double())), dtype);
    convert(dtype, number.data(), kDType<T>, &bound, 1);
    map_elements<T, T, T>("shrink_backward", out,
                          [bound](T grad, T x) { return x > bound || x < -bound ? grad : T(0); },
                          {&grad_output, &self});
  };
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16)
    run.template operator()<float>();
  else
    dispatch_float_double(dtype, "shrink_backward", run);
  return out;
}

Tensor power_number(const Tensor& self, Scalar exponent) {
  const DType dtype = ResultType().add(self).add_number(exponent).get();
  if (dtype == DType::kBool) {  // as ATen, which only fills and copies these
    const bool one = exponent.to_int() == 1;
    Tensor out = make_result("pow", {&self}, dtype, dtype);
    one ? copy(self, out) : fill(out, Scalar(true));
    return out;
  }
  if (is_integral(dtype, true)) {
    SCONCE_CHECK(!exponent.is_integral() || exponent.to_int() >= 0, kInvalidArgument,
                 "pow: Integers to negative integer powers are not allowed.");
    // Whole numbers: the tensor's dtype, in which the power wraps.
    Tensor number = Tensor::empty({}, dtype);
    fill(number, exponent);
    return pow_Tensor_Tensor(self, number);
  }
  if (exponent.is_complex() && exponent.to_complex().imag() != 0)
    return pow_Tensor_Tensor(to_dtype(self, dtype), number_tensor(exponent));
  const Tensor base = to_dtype(self, dtype);
  return pow_Tensor_Scalar(base, exponent.to_double());
}

Tensor number_power(Scalar self, const Tensor& exponent) {
  const DType dtype = ResultType().add_number(self).add(exponent).get();
  if (self.to_complex() == 1.0) {
    Tensor ones = Tensor::empty(exponent.sizes(), dtype);
    fill(ones, int64_t{1});
    return ones;
  }
  Tensor base = Tensor::empty({}, dtype);
  fill(base, self);
  // Row-major, as ATen's.
  return contiguous(pow_Tensor_Tensor(base, to_dtype(exponent, dtype)));
}

}  // namespace sconce::cpu
