// The type in which a function of elements computes: shared by operators of one, two or three tensors.
#pragma once

#include <type_traits>

#include "src/cpu/vector/lanes.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/elementwise.h"
#include "src/tensor/scalar.h"

namespace sconce {

// Computed in float for the small floats and in ComplexFloat for complex halves.
template <class F>
void dispatch_inexact(DType dtype, const char* name, F&& f) {
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) return f.template operator()<float>();
  if (dtype == DType::kComplex32) return f.template operator()<ComplexFloat>();
  detail::dispatch_list<DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kComplex128>(dtype, name, f);
}
template <class F>
void dispatch_any(DType dtype, const char* name, F&& f) {
  if (is_floating(dtype) || is_complex(dtype)) return dispatch_inexact(dtype, name, f);
  detail::dispatch_list<DType::kInt64, DType::kInt32, DType::kInt16, DType::kInt8, DType::kUInt8, DType::kBool>(
      dtype, name, f);
}

inline DType floating_result(DType dtype) { return is_integral(dtype, true) ? DType::kFloat32 : dtype; }

// Operands are rounded to a small dtype before the operation, as ATen converts them; so are numbers beside a tensor.
inline Tensor met(const Tensor& operand, DType dtype) {
  const bool small = dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kComplex32;
  return small && operand.dtype() != dtype ? to_dtype(operand, dtype) : operand;
}
// A single number by which half floats are divided keeps its precision.
inline Tensor met_divisor(const Tensor& operand, DType dtype) {
  return operand.numel() == 1 && dtype != DType::kComplex32 ? operand : met(operand, dtype);
}

template <class T>
T number_as(const Scalar& number) {
  if constexpr (kIsComplex<T>)
    return T(number.to_complex());
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(number.to_double());
  else
    return static_cast<T>(number.to_int());
}

// Floats of every width: halves in float.
template <class F>
void dispatch_computed_float(DType dtype, const char* name, F&& f) {
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) return f.template operator()<float>();
  dispatch_float_double(dtype, name, f);
}
// For functions that compare: every ordered dtype and bool.
template <class F>
decltype(auto) dispatch_ordered(DType dtype, const char* name, F&& f) {
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) return f.template operator()<float>();
  return detail::dispatch_list<DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kInt32, DType::kInt16,
                               DType::kInt8, DType::kUInt8, DType::kBool>(dtype, name, f);
}

// The unsigned wide integers too, those of 16 and 32 bits in a type that holds them.
template <class F>
void dispatch_ordered_wide(DType dtype, const char* name, F&& f) {
  if (dtype == DType::kUInt16) return f.template operator()<int32_t>();
  if (dtype == DType::kUInt32) return f.template operator()<int64_t>();
  if (dtype == DType::kUInt64) return f.template operator()<uint64_t>();
  dispatch_ordered(dtype, name, f);
}

inline DType promoted(const Tensor& a, const Tensor& b) { return ResultType().add(a).add(b).get(); }
inline DType promoted(const Tensor& a, const Scalar& b) { return ResultType().add(a).add_number(b).get(); }

// f, in SIMD lanes if T is a real number.
template <class T, class F>
auto in_lanes(F f) {
  if constexpr (kIsComplex<T>)
    return f;
  else
    return InLanes<F>{f};
}

// f(T) -> T of floats, preferably written for SIMD lanes; integers and bool give float32.
template <class F>
Tensor map_floats(const char* name, const Tensor& self, F f) {
  require_library(sleef_library());
  const DType dtype = floating_result(self.dtype());
  Tensor out = make_result(name, {&self}, dtype, dtype);
  dispatch_computed_float(dtype, name,
                          [&]<class T>() -> void { map_elements<T, T>(name, out, InLanes<F>{f}, {&self}); });
  return out;
}
// f(T, T) -> T of floats of that dtype.
template <class F>
Tensor map_floats(const char* name, const Tensor& self, const Tensor& other, DType dtype, F f) {
  require_library(sleef_library());
  dtype = floating_result(dtype);
  Tensor out = make_result(name, {&self, &other}, dtype, dtype);
  const Tensor a = met(self, dtype), b = met(other, dtype);
  dispatch_computed_float(dtype, name, [&]<class T>() -> void {
    map_elements<T, T, T>(name, out, InLanes<F>{f}, {&a, &b});
  });
  return out;
}
template <class F>
Tensor map_floats(const char* name, const Tensor& self, const Tensor& other, F f) {
  return map_floats(name, self, other, promoted(self, other), f);
}
// f(T, T) -> T of any ordered type.
template <class F>
Tensor map_ordered(const char* name, const Tensor& self, const Tensor& other, DType dtype, F f) {
  Tensor out = make_result(name, {&self, &other}, dtype, dtype);
  const Tensor a = met(self, dtype), b = met(other, dtype);
  dispatch_ordered_wide(dtype, name, [&]<class T>() -> void { map_elements<T, T, T>(name, out, f, {&a, &b}); });
  return out;
}

}  // namespace sconce
