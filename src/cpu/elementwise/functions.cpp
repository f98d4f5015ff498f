#include "src/cpu/elementwise/functions.h"

#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "sconce/check.h"
#include "src/cpu/vector/double_logarithms.h"
#include "src/cpu/vector/lanes.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/multiply.h"
#include "src/tensor/elementwise.h"

namespace sconce::cpu {
namespace {

constexpr int64_t kGrain = 8192;

// Calls through a pointer cost little here: the functions themselves take far longer.
template <class T>
struct Called {
  T (*function)(T);
  T operator()(T x) const { return function(x); }
};

template <class Rows>
bool mapped_in(const char* name, Tensor& out, const Tensor& self, Rows rows) {
  if (out.dtype() == DType::kFloat64)
    map_elements<double, double>(name, out, rows, {&self}, kGrain);
  else if (out.dtype() == DType::kFloat32 || out.dtype() == DType::kFloat16 || out.dtype() == DType::kBFloat16)
    map_elements<float, float>(name, out, rows, {&self}, kGrain);
  else
    return false;
  return true;
}
template <class F>
bool mapped_real(const char* name, Tensor& out, const Tensor& self, F function) {
  return mapped_in(name, out, self, InLanes<F>{function});
}
template <class F, class Beyond, class Plain>
bool mapped_real(const char* name, Tensor& out, const Tensor& self, InLanesWithin<F, Beyond, Plain> rows) {
  return mapped_in(name, out, self, rows);
}
template <class F, class Outside, class General>
bool mapped_real(const char* name, Tensor& out, const Tensor& self, InLanesUnless<F, Outside, General> rows) {
  return mapped_in(name, out, self, rows);
}
// `real` is written for lanes. `complex`, a generic lambda without captures, is called for complex numbers only.
template <class Real, class Complex>
Tensor mapped(const char* name, const Tensor& self, Real real, Complex complex) {
  require_library(sleef_library());
  const DType dtype = is_integral(self.dtype(), true) ? DType::kFloat32 : self.dtype();
  Tensor out = make_result(name, {&self}, dtype, dtype);
  if (mapped_real(name, out, self, real)) return out;
  if (dtype == DType::kComplex64 || dtype == DType::kComplex32)
    map_elements<ComplexFloat, ComplexFloat>(name, out, Called<ComplexFloat>{complex}, {&self}, 2048);
  else if (dtype == DType::kComplex128)
    map_elements<ComplexDouble, ComplexDouble>(name, out, Called<ComplexDouble>{complex}, {&self}, 2048);
  else
    fail_dispatch(dtype, name);
  return out;
}

template <class F>
Tensor mapped_real(const char* name, const Tensor& self, F function) {
  const DType dtype = is_integral(self.dtype(), true) ? DType::kFloat32 : self.dtype();
  Tensor out = make_result(name, {&self}, dtype, dtype);
  if (!mapped_real(name, out, self, function)) fail_dispatch(self.dtype(), name);
  return out;
}
// To whole numbers, which integers are.
template <class F>
Tensor rounded(const char* name, const Tensor& self, F function) {
  if (self.dtype() == DType::kBool) fail_dispatch(self.dtype(), name);
  return is_integral(self.dtype(), false) ? clone(self) : mapped_real(name, self, function);
}

template <class T>
std::complex<T> log1p_of(std::complex<T> z) {
  const T x = z.real(), y = z.imag(), argument = std::atan2(y, x + T(1));
  if (std::abs(z) >= T(0.5)) return {std::log(std::hypot(x + T(1), y)), argument};
  const T r = x * (T(2) + x) + y * y;
  return {r == T(0) ? x : T(0.5) * std::log1p(r), argument};
}
template <class T>
std::complex<T> expm1_of(std::complex<T> z) {
  const T half_sine = std::sin(z.imag() / T(2));
  return {std::expm1(z.real()) * std::cos(z.imag()) - T(2) * half_sine * half_sine,
          std::exp(z.real()) * std::sin(z.imag())};
}

template <class T>
std::complex<T> complex_log2(std::complex<T> z) {
  return std::log(z) / static_cast<T>(M_LN2);
}

// Where SLEEF's functions are called: for float where the short ones do not hold, for double nowhere else.
bool beyond_angles(float x) { return !(std::fabs(x) <= kMaxOfAngle); }
bool beyond_angles(double) { return false; }
bool without_logarithm(float x) { return !has_logarithm(x); }
bool without_logarithm(double x) { return !((x >= std::numeric_limits<double>::min()) & (x <= 8e307)); }

template <LogBase Base>
struct Logarithm {
  template <class T>
  T operator()(T x) const {
    if constexpr (Base == LogBase::kE) return simd::quick_log(x);
    if constexpr (Base == LogBase::kTwo) return simd::quick_log2(x);
    if constexpr (Base == LogBase::kTen) return simd::quick_log10(x);
  }
  void wide_row(int64_t count, double* out, const double* in) const noexcept {
    double_logarithms(Base, count, in, out);
  }
};

struct Negative {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(0 - static_cast<uint64_t>(x));
    else
      return -x;
  }
};
struct Sign {
  using OnBFloat16 = void;
  template <class T>
  T operator()(T x) const {
    if constexpr (kIsComplex<T>) {
      const auto length = std::abs(x);
      return length == 0 ? T(0) : x / length;
    } else if constexpr (std::is_same_v<T, bool>) {
      return x;
    } else {
      return static_cast<T>((T(0) < x) - (x < T(0)));
    }
  }
};

// Computed in float for the small floats and in ComplexFloat for complex halves.
template <class F>
void dispatch_computed(DType dtype, const char* name, F&& f) {
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) return f.template operator()<float>();
  if (dtype == DType::kComplex32) return f.template operator()<ComplexFloat>();
  detail::dispatch_list<DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kInt32, DType::kInt16, DType::kInt8,
                        DType::kUInt8, DType::kBool, DType::kComplex64, DType::kComplex128>(dtype, name, f);
}

template <class Test>
Tensor tested(const char* name, const Tensor& self, Test test) {
  Tensor out = make_result(name, {&self}, self.dtype(), DType::kBool);
  dispatch_computed(self.dtype(), name, [&]<class T>() -> void {
    map_elements<bool, T>(name, out, [test](T x) -> bool { return test(x); }, {&self});
  });
  return out;
}

}  // namespace

// `real` of real numbers, std::NAME of complex ones.
#define SCONCE_FUNCTION(name, real)                                                        \
  Tensor name(const Tensor& self) {                                                        \
    return mapped(                                                                         \
        #name, self, [](auto x) { return real(x); }, [](auto x) { return std::name(x); }); \
  }
SCONCE_FUNCTION(acos, simd::quick_acos)
SCONCE_FUNCTION(asin, simd::quick_asin)
SCONCE_FUNCTION(atan, simd::quick_atan)
SCONCE_FUNCTION(atanh, simd::atanh)
SCONCE_FUNCTION(sqrt, std::sqrt)
SCONCE_FUNCTION(tanh, simd::quick_tanh)
#undef SCONCE_FUNCTION

// By a short function, but by simd::NAME where `outside` says so.
#define SCONCE_FUNCTION_UNLESS(name, quick, outside, complex)                                                    \
  Tensor name(const Tensor& self) {                                                                              \
    return mapped(#name, self,                                                                                   \
                  InLanesUnless{quick, [](auto x) { return outside(x); }, [](auto x) { return simd::name(x); }}, \
                  [](auto x) { return complex(x); });                                                            \
  }
SCONCE_FUNCTION_UNLESS(
    cos, [](auto x) { return simd::quick_cos(x); }, beyond_angles, std::cos)
SCONCE_FUNCTION_UNLESS(log, Logarithm<LogBase::kE>(), without_logarithm, std::log)
SCONCE_FUNCTION_UNLESS(log10, Logarithm<LogBase::kTen>(), without_logarithm, std::log10)
SCONCE_FUNCTION_UNLESS(log2, Logarithm<LogBase::kTwo>(), without_logarithm, complex_log2)
SCONCE_FUNCTION_UNLESS(
    sin, [](auto x) { return simd::quick_sin(x); }, beyond_angles, std::sin)
SCONCE_FUNCTION_UNLESS(
    tan, [](auto x) { return simd::quick_tan(x); }, beyond_angles, std::tan)
#undef SCONCE_FUNCTION_UNLESS

Tensor exp(const Tensor& self) {
  return mapped(
      "exp", self,
      InLanesUnless{[](auto x) { return power(x); }, []<class T>(T x) { return !(std::fabs(x) <= kMaxOfExponent<T>); },
                    [](auto x) { return simd::quick_exp(x); }},
      [](auto x) { return std::exp(x); });
}

// The same, but std::NAME also of real numbers beyond `most`, where simd::NAME ends.
#define SCONCE_FUNCTION_WITHIN(name, most)                                                    \
  Tensor name(const Tensor& self) {                                                           \
    constexpr auto kWhole = [](auto x) { return std::name(x); };                              \
    return mapped(#name, self,                                                                \
                  InLanesWithin{[](auto x) { return simd::name(x); },                         \
                                []<class T>(T x) { return std::fabs(x) > most<T>; }, kWhole}, \
                  kWhole);                                                                    \
  }
SCONCE_FUNCTION_WITHIN(acosh, kMaxOfSquare)
SCONCE_FUNCTION_WITHIN(asinh, kMaxOfSquare)
SCONCE_FUNCTION_WITHIN(cosh, kMaxOfPower)
SCONCE_FUNCTION_WITHIN(sinh, kMaxOfPower)
#undef SCONCE_FUNCTION_WITHIN

Tensor exp2(const Tensor& self) {
  return mapped(
      "exp2", self, [](auto x) { return simd::exp2(x); },
      [](auto x) { return std::exp(x * static_cast<typename decltype(x)::value_type>(M_LN2)); });
}
Tensor expm1(const Tensor& self) {
  return mapped(
      "expm1", self, [](auto x) { return simd::expm1(x); }, [](auto x) { return expm1_of(x); });
}
Tensor log1p(const Tensor& self) {
  constexpr auto kWhole = [](auto x) { return log1p_of(x); };
  const bool in_double = self.dtype() == DType::kFloat64;
  // SLEEF's log1p fails for the largest numbers of the type.
  if (in_double)
    return mapped("log1p", self,
                  InLanesWithin{[](auto x) { return simd::log1p(x); }, []<class T>(T x) { return x > kMaxOfLog1p<T>; },
                                [](auto x) { return std::log1p(x); }},
                  kWhole);
  return mapped("log1p", self,
                InLanesUnless{[](auto x) { return simd::quick_log1p(x); },
                              [](auto x) { return !has_logarithm1p(static_cast<float>(x)); },
                              // -infinity, -1, what is below, infinity, NaN
                              []<class T>(T x) -> T {
                                constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
                                const T below = x < T(-1) ? kNaN : -std::numeric_limits<T>::infinity();
                                return x > T(-1) || x != x ? x : below;
                              }},
                kWhole);
}
Tensor reciprocal(const Tensor& self) {
  return mapped(
      "reciprocal", self, [](auto x) { return decltype(x)(1) / x; },
      [](auto x) { return quotient(decltype(x)(1), x); });
}
Tensor rsqrt(const Tensor& self) {
  constexpr auto kInverseRoot = [](auto x) { return decltype(x)(1) / std::sqrt(x); };
  return mapped("rsqrt", self, kInverseRoot, kInverseRoot);
}
Tensor sigmoid(const Tensor& self) {
  return mapped(
      "sigmoid", self, [](auto x) { return simd::quick_sigmoid(x); },
      [](auto x) { return decltype(x)(1) / (decltype(x)(1) + std::exp(-x)); });
}
Tensor silu(const Tensor& self) {
  SCONCE_CHECK(!is_integral(self.dtype(), true), kUnsupported, "silu: not implemented for '", dtype_name(self.dtype()),
               "'");
  return mapped(
      "silu", self, [](auto x) { return x / (decltype(x)(1) + simd::quick_exp(-x)); },
      [](auto x) { return x / (decltype(x)(1) + std::exp(-x)); });
}

Tensor erf(const Tensor& self) {
  require_library(sleef_library());
  return mapped_real("erf", self, [](auto x) { return simd::quick_erf(x); });
}
Tensor erfc(const Tensor& self) {
  require_library(sleef_library());
  return mapped_real("erfc", self, [](auto x) { return simd::quick_erfc(x); });
}
Tensor lgamma(const Tensor& self) {
  require_library(sleef_library());
  return mapped_real("lgamma", self, [](auto x) { return simd::lgamma(x); });
}
Tensor ceil(const Tensor& self) {
  return rounded("ceil", self, [](auto x) { return std::ceil(x); });
}
Tensor floor(const Tensor& self) {
  return rounded("floor", self, [](auto x) { return std::floor(x); });
}
Tensor round(const Tensor& self) {
  return rounded("round", self, [](auto x) { return std::nearbyint(x); });
}
Tensor trunc(const Tensor& self) {
  return rounded("trunc", self, [](auto x) { return std::trunc(x); });
}
Tensor frac(const Tensor& self) {
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), "frac");
  return mapped_real("frac", self, [](auto x) { return x - std::trunc(x); });
}

Tensor neg(const Tensor& self) {
  SCONCE_CHECK(self.dtype() != DType::kBool, kInvalidArgument,
               "neg: Negation, the `-` operator, on a bool tensor is not supported.");
  Tensor out = make_result("neg", {&self}, self.dtype(), self.dtype());
  if (self.dtype() == DType::kFloat16 || self.dtype() == DType::kBFloat16) {
    const Tensor bits = view_dtype(self, DType::kInt16);
    Tensor to = view_dtype(out, DType::kInt16);
    map_elements<int16_t, int16_t>("neg", to, [](int16_t x) { return static_cast<int16_t>(x ^ 0x8000); }, {&bits});
    return out;
  }
  dispatch_computed(self.dtype(), "neg",
                    [&]<class T>() -> void { map_elements<T, T>("neg", out, Negative(), {&self}); });
  return out;
}
Tensor sgn(const Tensor& self) {
  Tensor out = make_result("sgn", {&self}, self.dtype(), self.dtype());
  dispatch_computed(self.dtype(), "sgn", [&]<class T>() -> void { map_elements<T, T>("sgn", out, Sign(), {&self}); });
  return out;
}

Tensor isnan(const Tensor& self) {
  return tested("isnan", self, [](auto x) { return x != x; });
}
Tensor isinf(const Tensor& self) {
  return tested("isinf", self, [](auto x) {
    if constexpr (kIsComplex<decltype(x)>)
      return std::isinf(x.real()) || std::isinf(x.imag());
    else if constexpr (std::is_floating_point_v<decltype(x)>)
      return std::isinf(x);
    else
      return false;
  });
}
Tensor logical_not(const Tensor& self) {
  return tested("logical_not", self, [](auto x) { return x == decltype(x)(0); });
}

}  // namespace sconce::cpu
