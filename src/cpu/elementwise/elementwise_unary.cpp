// Absolute value, argument, greatest common divisor, polar form, window.
#include <cmath>
#include <complex>
#include <limits>

#include "sconce/check.h"
#include "src/cpu/elementwise/elementwise_ops.h"
#include "src/cpu/vector/lanes.h"
#include "src/cpu/vector/vector_math.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elementwise.h"
#include "src/tensor/factory.h"
#include "src/tensor/fill.h"
#include "src/tensor/rules/arithmetic.h"

namespace sconce::cpu {
namespace {

// Without branches; NaN stays.
template <class T>
T argument_of_real(T x) {
  return std::isnan(x) ? x : x < 0 ? static_cast<T>(M_PI) : T(0);
}

// Euclid's algorithm with C's remainder. The smallest integer, which is its own absolute value, gives what ATen gives.
template <class T>
T common_divisor(T a, T b) {
  const auto absolute = [](T x) {
    return static_cast<T>(x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x));
  };
  a = absolute(a);
  b = absolute(b);
  while (a != 0) {
    const T rest = static_cast<T>(b % a);
    b = a;
    a = rest;
  }
  return b;
}

// The same bits as glibc's, in a form that GCC turns into vector code: the squares of floats are exact in double, whose
// range holds their sum. An infinite part is larger than a NaN.
struct Magnitude {
  float operator()(ComplexFloat z) const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double re = std::abs(static_cast<double>(z.real())), im = std::abs(static_cast<double>(z.imag()));
    const double length = std::sqrt(re * re + im * im);
    return static_cast<float>(simd::choose(re == kInfinity || im == kInfinity, kInfinity, length));
  }
};

template <class T>
void window(Tensor& out, int64_t n) {
  using Compute = ComputeType<T>;
  T* const values = out.data_as<T>();
  const auto rounded = [](Compute x) -> Compute { return T(x); };
  const Compute step = rounded(static_cast<Compute>(M_PI * 2.0 / static_cast<double>(n)));
  for (int64_t i = 0; i <= n; ++i) {
    const Compute cosine = rounded(std::cos(rounded(rounded(static_cast<Compute>(i)) * step)));
    values[i] = T(rounded(cosine * Compute(-0.5)) + Compute(0.5));
  }
}

}  // namespace

// Real, also of complex numbers.
Tensor abs(const Tensor& self) {
  const DType dtype = self.dtype();
  Tensor out = is_complex(dtype) ? empty_like(self, value_dtype(dtype)) : make_result("abs", {&self}, dtype, dtype);
  const auto magnitude = [](auto x) { return std::abs(x); };
  switch (dtype) {
    case DType::kComplex32:
    case DType::kComplex64:
      map_elements<float, ComplexFloat>("abs", out, Magnitude(), {&self});
      break;
    case DType::kComplex128:
      map_elements<double, ComplexDouble>("abs", out, magnitude, {&self});
      break;
    case DType::kFloat64:
      map_elements<double, double>("abs", out, magnitude, {&self});
      break;
    case DType::kFloat16:
    case DType::kBFloat16: {
      Tensor bits = view_dtype(out, DType::kInt16);
      const Tensor self_bits = view_dtype(self, DType::kInt16);
      map_elements<int16_t, int16_t>("abs", bits, [](int16_t x) { return static_cast<int16_t>(x & 0x7FFF); },
                                     {&self_bits});
      break;
    }
    case DType::kUInt8:
      map_elements<uint8_t, uint8_t>("abs", out, [](uint8_t x) { return x; }, {&self});
      break;
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
      dispatch_integral(dtype, "abs", [&]<class T>() -> void {
        map_elements<T, T>(
            "abs", out,
            [](T x) { return static_cast<T>(x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x)); },
            {&self});
      });
      break;
    default:
      if (!is_floating(dtype) && !is_float8(dtype)) fail_dispatch(dtype, "abs");
      map_elements<float, float>("abs", out, magnitude, {&self});
  }
  return out;
}

// float32 of integers.
Tensor angle(const Tensor& self) {
  const DType dtype = self.dtype();
  const DType result = is_integral(dtype, true) ? DType::kFloat32 : value_dtype(dtype);
  if (is_float8(dtype) || dtype == DType::kComplex32 || dtype == DType::kFloat4E2M1FNx2) fail_dispatch(dtype, "angle");
  // Row-major for complex numbers, as ATen's.
  Tensor out = is_complex(dtype) ? Tensor::empty(self.sizes(), result) : make_result("angle", {&self}, result, result);
  const auto of_complex = [](auto z) { return std::atan2(z.imag(), z.real()); };
  if (dtype == DType::kComplex64)
    map_elements<float, ComplexFloat>(
        "angle", out, [](ComplexFloat z) { return angle_of(z.imag(), z.real()); }, {&self}, 2048);
  else if (dtype == DType::kComplex128)
    map_elements<double, ComplexDouble>("angle", out, of_complex, {&self}, 2048);
  else if (dtype == DType::kFloat64)
    map_elements<double, double>("angle", out, [](double x) { return argument_of_real(x); }, {&self});
  else
    map_elements<float, float>("angle", out, [](float x) { return argument_of_real(x); }, {&self});
  return out;
}

Tensor gcd(const Tensor& self, const Tensor& other) {
  const DType dtype = ResultType().add(self).add(other).get();
  Tensor out = make_result("gcd", {&self, &other}, dtype, dtype);
  dispatch_integral(dtype, "gcd", [&]<class T>() -> void {
    map_elements<T, T, T>(
        "gcd", out, [](T a, T b) { return common_divisor(a, b); }, {&self, &other}, 2048);
  });
  return out;
}

// float32, float64 or float16 to complex.
Tensor polar(const Tensor& abs, const Tensor& angle) {
  const DType dtype = abs.dtype(), result = complex_dtype("polar", abs, angle);
  Tensor out = make_result("polar", {&abs, &angle}, dtype, result);
  const auto from_polar = []<class T>(T length, T argument) {
    return std::complex<T>(length * std::cos(argument), length * std::sin(argument));
  };
  if (dtype == DType::kFloat64)
    map_elements<ComplexDouble, double, double>("polar", out, from_polar, {&abs, &angle}, 2048);
  else
    map_elements<ComplexFloat, float, float>("polar", out, from_polar, {&abs, &angle}, 2048);
  return out;
}

Tensor hann_window_periodic(int64_t window_length, bool periodic, OptType dtype, OptEnum layout, OptDevice device,
                            OptEnum pin_memory) {
  check_factory("hann_window", layout, device, pin_memory);
  const DType type = dtype.value_or(kDefaultDType);
  SCONCE_CHECK(is_floating(type) || is_complex(type) || is_float8(type), kInvalidArgument,
               "hann_window: expects floating point dtypes, got ", dtype_name(type));
  SCONCE_CHECK(window_length >= 0, kInvalidArgument, "hann_window: requires non-negative window_length, got ",
               window_length);
  if (window_length <= 1) {
    Tensor out = Tensor::empty(IntSpan(&window_length, 1), type);
    fill(out, 1.0);
    return out;
  }
  // The periodic window is the symmetric window of one more value, without the last.
  const int64_t symmetric = window_length + periodic;
  Tensor out = Tensor::empty(IntSpan(&symmetric, 1), type);
  dispatch_floating(type, "hann_window", [&]<class T>() -> void { window<T>(out, symmetric - 1); });
  return periodic ? narrow(out, 0, 0, window_length) : out;
}

// Periodic.
Tensor hann_window(int64_t window_length, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return hann_window_periodic(window_length, true, dtype, layout, device, pin_memory);
}

}  // namespace sconce::cpu
