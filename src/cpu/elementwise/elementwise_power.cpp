// Powers. Exponents that ATen computes otherwise than by pow are: 0, 1, 2, 3, -2, and for all types but half 0.5, -0.5
// and -1.
#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "src/cpu/vector/vector_math.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elementwise.h"
#include "src/tensor/fill.h"

namespace sconce::cpu {
namespace {

// Integers wrap; a negative exponent leaves only powers of 1 and -1.
template <class T>
T integer_power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>)
    if (exponent < 0) return base == 1 ? T(1) : base == T(-1) ? (exponent % 2 ? T(-1) : T(1)) : T(0);
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (auto rest = static_cast<uint64_t>(exponent); rest; rest >>= 1, factor *= factor)
    if (rest & 1) result *= factor;
  return static_cast<T>(result);
}

struct Power {
  template <class T>
  T operator()(T base, T exponent) const {
    if constexpr (std::is_integral_v<T>)
      return integer_power(base, exponent);
    else
      return std::pow(base, exponent);
  }
  void row(int64_t count, float* out, const float* base, const float* exponent) const noexcept {
    power_row(count, out, base, [exponent](int64_t i) { return static_cast<double>(exponent[i]); });
  }

  // Works block by block and computes the unusual elements one by one. `out` may be an input; at(i) is the exponent.
  template <class Exponent>
  static void power_row(int64_t count, float* out, const float* base, Exponent at) noexcept {
    constexpr int64_t kBlock = 64;
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int64_t n = std::min(kBlock, count - begin);
      // Loops over one type each, which vectorise.
      double x[kBlock], y[kBlock];
      for (int64_t i = 0; i < n; ++i) x[i] = static_cast<double>(base[begin + i]);
      for (int64_t i = 0; i < n; ++i) y[i] = at(begin + i);
      for (int64_t i = 0; i < n; ++i) x[i] = power_of_normal(x[i], y[i]);
      float result[kBlock];
      for (int64_t i = 0; i < n; ++i) result[i] = static_cast<float>(x[i]);
      int32_t usual = 1;
      for (int64_t i = 0; i < n; ++i) {
        // The exponent bits of the base hold the whole part of its logarithm.
        const auto bits = std::bit_cast<int32_t>(base[begin + i]);
        const float size = std::fabs(static_cast<float>((bits >> 23) - 127)) + 1.0f;
        usual &= static_cast<int32_t>(bits >= 0x00800000) & static_cast<int32_t>(bits < 0x7F800000) &
                 static_cast<int32_t>(std::fabs(static_cast<float>(y[i])) * size < 126.0f);
      }
      if (!usual)
        for (int64_t i = 0; i < n; ++i)
          result[i] = static_cast<float>(std::pow(static_cast<double>(base[begin + i]), y[i]));
      std::copy_n(result, n, out + begin);
    }
  }
};
// Powers with one exponent, which is a double because a float may not represent it.
struct PowerOf {
  double exponent;
  float operator()(float base) const { return static_cast<float>(std::pow(static_cast<double>(base), exponent)); }
  void row(int64_t count, float* out, const float* base) const noexcept {
    Power::power_row(count, out, base, [e = exponent](int64_t) { return e; });
  }
};

template <class T>
T times(T a, T b) {
  if constexpr (kIsComplex<T>)
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  else
    return a * b;
}

// base^exponent for one exponent, of the compute type T; intermediate results are rounded as ATen's vectors do.
template <class T, class Round>
void power_of(const Tensor& self, Tensor& out, double exponent, bool roots, Round round) {
  const auto run = [&](auto f) { map_elements<T, T>("pow", out, f, {&self}); };
  if (roots && exponent == 0.5) return run([](T x) { return std::sqrt(x); });
  if (roots && exponent == -0.5) return run([](T x) { return T(1) / std::sqrt(x); });
  if (roots && exponent == -1.0) return run([](T x) { return T(1) / x; });
  if (exponent == 2.0) return run([](T x) { return times(x, x); });
  if (exponent == 3.0) return run([round](T x) { return times(round(times(x, x)), x); });
  if (exponent == -2.0) return run([round](T x) { return T(1) / round(times(x, x)); });
  using Real = decltype(std::abs(T()));
  if constexpr (std::is_same_v<T, float>)
    run(PowerOf{exponent});
  else
    run([e = T(static_cast<Real>(exponent))](T x) { return std::pow(x, e); });
}

constexpr auto kExact = [](auto x) { return x; };

Tensor rounded(const Tensor& operand, DType dtype) {
  const bool small = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  return small && operand.dtype() != dtype ? to_dtype(operand, dtype) : operand;
}

void power(const Tensor& self, const Tensor& exponent, Tensor& out) {
  const DType dtype = out.dtype();
  const Tensor a = rounded(self, dtype), b = rounded(exponent, dtype);
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16)
    return map_elements<float, float, float>("pow", out, Power(), {&a, &b}, 2048);
  detail::dispatch_list<DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kInt32, DType::kInt16, DType::kInt8,
                        DType::kUInt8, DType::kComplex64, DType::kComplex128>(dtype, "pow", [&]<class T>() -> void {
    map_elements<T, T, T>("pow", out, Power(), {&a, &b}, 2048);
  });
}

}  // namespace

Tensor pow_Tensor_Tensor(const Tensor& self, const Tensor& exponent) {
  const DType dtype = ResultType().add(self).add(exponent).get();
  Tensor out = make_result("pow", {&self, &exponent}, dtype, dtype);
  power(self, exponent, out);
  return out;
}

Tensor pow_Tensor_Scalar(const Tensor& self, double exponent) {
  const DType dtype = ResultType().add(self).add_number(exponent).get();
  Tensor out = make_result("pow", {&self}, dtype, dtype);
  if (exponent == 0.0) {
    fill(out, 1.0);
  } else if (exponent == 1.0) {
    copy(self, out);
  } else {
    switch (dtype) {
      case DType::kFloat16:
        power_of<float>(self, out, exponent, false, kExact);
        break;
      case DType::kBFloat16:
        power_of<float>(self, out, exponent, true, [](float x) -> float { return BFloat16(x); });
        break;
      case DType::kFloat32:
        power_of<float>(self, out, exponent, true, kExact);
        break;
      case DType::kFloat64:
        power_of<double>(self, out, exponent, true, kExact);
        break;
      case DType::kComplex64:
        power_of<ComplexFloat>(self, out, exponent, true, kExact);
        break;
      case DType::kComplex128:
        power_of<ComplexDouble>(self, out, exponent, true, kExact);
        break;
      default:
        fail_dispatch(dtype, "pow");
    }
  }
  return out;
}

Tensor pow_Scalar(double self, const Tensor& exponent) {
  const DType dtype = ResultType().add_number(self).add(exponent).get();
  Tensor out = Tensor::empty(exponent.sizes(), dtype);
  if (self == 1.0) {
    fill(out, 1.0);
  } else {
    Tensor base = Tensor::empty({}, DType::kFloat64);
    *base.data_as<double>() = self;
    power(base, exponent, out);
  }
  return out;
}

}  // namespace sconce::cpu
