// Addition, subtraction, multiplication. Numbers arrive as double, so that they are of the floating category as in
// ATen: an integer tensor and a number give float32, and alpha is refused for integer results. Strides accepted: any,
// operands broadcast. Matches ATen's CPU kernels, torch 2.15.
#include <cmath>
#include <type_traits>

#include "sconce/check.h"
#include "src/cpu/elementwise/arithmetic.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elementwise.h"
#include "src/tensor/fill.h"
#include "src/tensor/rules/arithmetic.h"

namespace sconce::cpu {
namespace {

// a * b as c10 computes it: no recovery of infinities in complex products, integers wrap.
struct Product {
  using OnBFloat16 = void;
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (kIsComplex<T>)
      return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
    else if constexpr (std::is_same_v<T, bool>)
      return a && b;
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else
      return a * b;
  }
};

// a + alpha * b. The product is fused for real types.
template <class T>
struct AddScaled {
  using OnBFloat16 = void;
  T alpha;
  T operator()(T a, T b) const {
    if constexpr (kIsComplex<T>)
      return a + Product()(b, alpha);
    else if constexpr (std::is_same_v<T, bool>)
      return a || (alpha && b);
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(alpha) * static_cast<uint64_t>(b));
    else
      return std::fma(b, alpha, a);
  }
};

// For dtypes that are stored small and computed wide, operands are rounded to the dtype before they are combined.
bool is_small(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kComplex32 || is_float8(dtype);
}
Tensor rounded(const Tensor& operand, DType dtype) {
  return is_small(dtype) && operand.dtype() != dtype ? to_dtype(operand, dtype) : operand;
}
// A number as T, which computes elements of the dtype. kInvalidArgument where the dtype cannot hold it.
template <class T>
T rounded(const Scalar& value, DType dtype) {
  alignas(16) std::byte bytes[16];
  value.visit([&](auto number) {
    if constexpr (std::is_same_v<decltype(number), bool>)
      scalar_bytes(static_cast<int64_t>(number), dtype, bytes);
    else
      scalar_bytes(number, dtype, bytes);
  });
  T result{};
  convert(dtype, bytes, kDType<T>, &result, 1);
  return result;
}

Tensor add_scaled(const char* name, const Tensor& self, const Tensor& other, DType dtype, const Scalar& alpha) {
  check_alpha(name, dtype, alpha);
  Tensor out = make_result(name, {&self, &other}, dtype, dtype);
  const Tensor a = rounded(self, dtype), b = rounded(other, dtype);
  const auto run = [&]<class T>() {
    map_elements<T, T, T>(name, out, AddScaled<T>{rounded<T>(alpha, dtype)}, {&a, &b});
  };
  switch (dtype) {
    case DType::kFloat16:
    case DType::kBFloat16:
      run.template operator()<float>();
      break;
    case DType::kComplex32:
      run.template operator()<ComplexFloat>();
      break;
    default:
      detail::dispatch_list<DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kInt32, DType::kInt16, DType::kInt8,
                            DType::kUInt8, DType::kBool, DType::kUInt16, DType::kUInt32, DType::kUInt64,
                            DType::kComplex64, DType::kComplex128>(
          dtype, name, [&]<class T>() -> void { run.template operator()<T>(); });
  }
  return out;
}

Tensor multiply(const Tensor& self, const Tensor& other, DType dtype) {
  Tensor out = make_result("mul", {&self, &other}, dtype, dtype);
  const Tensor a = rounded(self, dtype);
  const auto run = [&]<class T>(const Tensor& b) { map_elements<T, T, T>("mul", out, Product(), {&a, &b}); };
  if (is_small(dtype) && dtype != DType::kComplex32) {
    // A single number is multiplied in full precision.
    if (other.numel() == 1) {
      SCONCE_CHECK(!is_float8(dtype), kUnsupported, "mul: not implemented for '", dtype_name(dtype), "' and a number");
      run.operator()<float>(other);
    } else {
      run.operator()<float>(rounded(other, dtype));
    }
    return out;
  }
  if (dtype == DType::kComplex32) {
    run.operator()<ComplexFloat>(rounded(other, dtype));
    return out;
  }
  detail::dispatch_list<DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kInt32, DType::kInt16, DType::kInt8,
                        DType::kUInt8, DType::kBool, DType::kUInt16, DType::kUInt32, DType::kUInt64, DType::kComplex64,
                        DType::kComplex128>(dtype, "mul",
                                            [&]<class T>() -> void { run.template operator()<T>(other); });
  return out;
}

Scalar negative(const Scalar& number) {
  return number.visit([](auto value) -> Scalar {
    if constexpr (std::is_same_v<decltype(value), bool>)
      return value;
    else
      return -value;
  });
}

}  // namespace

Tensor add(const Tensor& self, const Tensor& other, Scalar alpha) {
  return add_scaled("add", self, other, ResultType().add(self).add(other).get(), alpha);
}
Tensor add_number(const Tensor& self, Scalar other, Scalar alpha) {
  return add_scaled("add", self, number_tensor(other), ResultType().add(self).add_number(other).get(), alpha);
}
Tensor subtract(const Tensor& self, const Tensor& other, Scalar alpha) {
  SCONCE_CHECK(self.dtype() != DType::kBool || other.dtype() != DType::kBool, kInvalidArgument,
               "subtract: Subtraction, the `-` operator, with two bool tensors is not supported.");
  SCONCE_CHECK(self.dtype() != DType::kBool && other.dtype() != DType::kBool, kInvalidArgument,
               "subtract: Subtraction, the `-` operator, with a bool tensor is not supported.");
  return add_scaled("subtract", self, other, ResultType().add(self).add(other).get(), negative(alpha));
}
Tensor subtract_number(const Tensor& self, Scalar other, Scalar alpha) {
  SCONCE_CHECK(self.dtype() != DType::kBool && !other.is_bool(), kInvalidArgument,
               "subtract: Subtraction, the `-` operator, with a bool tensor is not supported.");
  return add_scaled("subtract", self, number_tensor(other), ResultType().add(self).add_number(other).get(),
                    negative(alpha));
}
Tensor multiply(const Tensor& self, const Tensor& other) {
  return multiply(self, other, ResultType().add(self).add(other).get());
}
Tensor multiply_number(const Tensor& self, Scalar other) {
  return multiply(self, number_tensor(other), ResultType().add(self).add_number(other).get());
}

// self + alpha * other.
Tensor add_Tensor(const Tensor& self, const Tensor& other, double alpha) { return add(self, other, alpha); }
Tensor add_Scalar(const Tensor& self, double other, double alpha) { return add_number(self, other, alpha); }
Tensor subtract_Tensor(const Tensor& self, const Tensor& other, double alpha) { return subtract(self, other, alpha); }
Tensor mul_Tensor(const Tensor& self, const Tensor& other) { return multiply(self, other); }
Tensor mul_Scalar(const Tensor& self, double other) { return multiply_number(self, other); }

}  // namespace sconce::cpu
