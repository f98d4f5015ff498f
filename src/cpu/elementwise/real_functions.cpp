#include "src/cpu/elementwise/real_functions.h"

#include <atomic>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>

#include "sconce/check.h"
#include "src/cpu/elementwise/computed.h"
#include "src/cpu/elementwise/functions.h"

namespace sconce::cpu {
namespace {

using simd::choose;

struct Atan2 {
  template <class T>
  T operator()(T a, T b) const {
    return simd::atan2(a, b);
  }
};
struct Copysign {
  template <class T>
  T operator()(T a, T b) const {
    return std::copysign(a, b);
  }
};
struct Xlogy {
  template <class T>
  T operator()(T x, T y) const {
    return choose(y != y, y, choose(x == T(0), T(0), x * simd::log(y)));
  }
};

// f(T, T, by_zero) of integers, f(T, T) of floats.
template <class Integers, class Floats>
Tensor divided(const char* name, const Tensor& self, const Tensor& other, DType dtype, Integers integers,
               Floats floats) {
  if (is_floating(dtype)) return map_floats(name, self, other, dtype, floats);
  Tensor out = make_result(name, {&self, &other}, dtype, dtype);
  std::atomic<bool> by_zero = false;
  dispatch_integral(dtype, name, [&]<class T>() -> void {
    map_elements<T, T, T>(name, out,
                          [&](T a, T b) -> T {
                            if (b == T(0)) {
                              by_zero.store(true, std::memory_order_relaxed);
                              return 0;
                            }
                            if constexpr (std::is_signed_v<T>)
                              if (b == T(-1)) return 0;
                            return integers(a, b);
                          },
                          {&self, &other});
  });
  SCONCE_CHECK(!by_zero.load(), kInvalidArgument, name, ": ZeroDivisionError");
  return out;
}
Tensor remainder_as(const Tensor& self, const Tensor& other, DType dtype) {
  return divided(
      "remainder", self, other, dtype,
      []<class T>(T a, T b) -> T {
        const T rest = static_cast<T>(a % b);
        return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
      },
      []<class T>(T a, T b) -> T {
        const T rest = simd::fmod(a, b);
        return choose((rest != 0) & ((b < 0) != (rest < 0)), rest + b, rest);
      });
}
Tensor fmod_as(const Tensor& self, const Tensor& other, DType dtype) {
  return divided(
      "fmod", self, other, dtype, []<class T>(T a, T b) -> T { return static_cast<T>(a % b); },
      []<class T>(T a, T b) -> T { return simd::fmod(a, b); });
}

// log(base^a + base^b): the larger plus the logarithm of what the smaller adds.
template <class T, class Power, class Log>
T log_of_sum(T x, T y, Power power, Log log) {
  const T sum = (x > y || x != x ? x : y) + log(T(1) + power(-std::fabs(x - y)));
  return choose((x == y) & (std::fabs(x) == std::numeric_limits<T>::infinity()), x, sum);
}
template <class T>
std::complex<T> log_of_sum(std::complex<T> x, std::complex<T> y) {
  constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
  if (std::isnan(x.real()) || std::isnan(x.imag()) || std::isnan(y.real()) || std::isnan(y.imag())) return {kNaN, kNaN};
  const bool first = x.real() >= y.real();
  const std::complex<T> large = first ? x : y, small = first ? y : x;
  if (!std::isfinite(large.real()) && large.real() == small.real())
    return large.real() < 0 ? small : std::log(std::exp(large) + std::exp(small));
  return large + std::log(T(1) + std::exp(small - large));
}

}  // namespace

Tensor atan2(const Tensor& self, const Tensor& other) { return map_floats("atan2", self, other, Atan2()); }
Tensor copysign(const Tensor& self, const Tensor& other) { return map_floats("copysign", self, other, Copysign()); }
Tensor copysign_number(const Tensor& self, Scalar other) {
  return map_floats("copysign", self, number_tensor(other), promoted(self, other), Copysign());
}
Tensor hypot(const Tensor& self, const Tensor& other) {
  const DType dtype = promoted(self, other);
  if (!is_floating(dtype)) fail_dispatch(dtype, "hypot");
  return map_floats("hypot", self, other, dtype, [](auto a, auto b) { return simd::hypot(a, b); });
}
Tensor logaddexp(const Tensor& self, const Tensor& other) {
  const DType dtype = promoted(self, other);
  require_library(sleef_library());
  Tensor out = make_result("logaddexp", {&self, &other}, dtype, dtype);
  const Tensor a = met(self, dtype), b = met(other, dtype);
  dispatch_inexact(dtype, "logaddexp", [&]<class T>() -> void {
    const auto sum = [](T x, T y) -> T {
      if constexpr (kIsComplex<T>)
        return log_of_sum(x, y);
      else
        return log_of_sum(
            x, y, [](T v) { return simd::quick_exp(v); }, [](T v) { return simd::log(v); });
    };
    map_elements<T, T, T>("logaddexp", out, in_lanes<T>(sum), {&a, &b});
  });
  return out;
}
Tensor logaddexp2(const Tensor& self, const Tensor& other) {
  const DType dtype = promoted(self, other);
  if (!is_floating(dtype)) fail_dispatch(dtype, "logaddexp2");
  return map_floats("logaddexp2", self, other, dtype, []<class T>(T x, T y) -> T {
    return log_of_sum(
        x, y, [](T v) { return simd::exp2(v); }, [](T v) { return simd::log2(v); });
  });
}
Tensor xlogy(const Tensor& self, const Tensor& other) { return map_floats("xlogy", self, other, Xlogy()); }
Tensor xlogy_number(const Tensor& self, Scalar other) {
  return map_floats("xlogy", self, number_tensor(other), promoted(self, other), Xlogy());
}
Tensor xlogy_of_number(Scalar self, const Tensor& other) {
  return map_floats("xlogy", number_tensor(self), other, promoted(other, self), Xlogy());
}
Tensor special_xlog1py(const Tensor& self, const Tensor& other) {
  require_library(sleef_library());
  const DType dtype = floating_result(promoted(self, other));
  Tensor out = make_result("special_xlog1py", {&self, &other}, dtype, dtype);
  const Tensor a = met(self, dtype), b = met(other, dtype);
  const InLanesWithin product{
      []<class T>(T x, T y) -> T { return choose(y != y, y, choose(x == T(0), T(0), x * simd::log1p(y))); },
      []<class T>(T, T y) { return y > kMaxOfLog1p<T>; },
      []<class T>(T x, T y) -> T { return x == T(0) ? T(0) : x * std::log1p(y); }};
  dispatch_computed_float(dtype, "special_xlog1py", [&]<class T>() -> void {
    map_elements<T, T, T>("special_xlog1py", out, product, {&a, &b});
  });
  return out;
}

Tensor remainder(const Tensor& self, const Tensor& other) { return remainder_as(self, other, promoted(self, other)); }
Tensor remainder_number(const Tensor& self, Scalar other) {
  const DType dtype = promoted(self, other);
  return remainder_as(self, to_dtype(number_tensor(other), dtype), dtype);
}
Tensor remainder_of_number(Scalar self, const Tensor& other) {
  const DType dtype = promoted(other, self);
  return remainder_as(to_dtype(number_tensor(self), dtype), other, dtype);
}
Tensor fmod(const Tensor& self, const Tensor& other) { return fmod_as(self, other, promoted(self, other)); }
Tensor fmod_number(const Tensor& self, Scalar other) {
  const DType dtype = promoted(self, other);
  return fmod_as(self, to_dtype(number_tensor(other), dtype), dtype);
}
Tensor lcm(const Tensor& self, const Tensor& other) {
  const DType dtype = promoted(self, other);
  Tensor out = make_result("lcm", {&self, &other}, dtype, dtype);
  dispatch_integral(dtype, "lcm", [&]<class T>() -> void {
    map_elements<T, T, T>(
        "lcm", out,
        [](T a, T b) -> T {
          // The product wraps like int, or like the type if that is wider, and is then cut to the type.
          using Wide = std::conditional_t<(sizeof(T) < sizeof(int32_t)), int32_t, T>;
          const auto size = [](T x) { return x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x); };
          const uint64_t common = std::gcd(size(a), size(b));
          if (common == 0) return 0;
          const auto multiple = static_cast<Wide>(size(a) / common * size(b));
          return static_cast<T>(multiple < 0 ? 0 - static_cast<uint64_t>(multiple) : static_cast<uint64_t>(multiple));
        },
        {&self, &other});
  });
  return out;
}

Tensor deg2rad(const Tensor& self) {
  return map_floats("deg2rad", self, [](auto x) { return x * static_cast<decltype(x)>(M_PI / 180); });
}
Tensor rad2deg(const Tensor& self) {
  return map_floats("rad2deg", self, [](auto x) { return x * static_cast<decltype(x)>(180 / M_PI); });
}
Tensor logit(const Tensor& self, std::optional<double> eps) {
  require_library(sleef_library());
  const DType dtype = floating_result(self.dtype());
  Tensor out = make_result("logit", {&self}, dtype, dtype);
  dispatch_computed_float(dtype, "logit", [&]<class T>() -> void {
    const bool bounded = eps && *eps >= 0;
    const T low = bounded ? static_cast<T>(*eps) : -std::numeric_limits<T>::infinity(),
            high = bounded ? T(1) - low : std::numeric_limits<T>::infinity();
    const auto within = [low, high](T x) { return x < low ? low : x > high ? high : x; };
    // The short logarithm takes odds that are normal numbers. Bounds may see to that, but not for NaN.
    constexpr T kInfinity = std::numeric_limits<T>::infinity(), kLeast = T(1e-30);
    const bool safe = bounded && low > kLeast && low < T(1) && high < T(1);
    const T least = safe ? -kInfinity : kLeast, most = safe ? kInfinity : T(1);
    const auto outside = [least, most](T x) { return std::is_same_v<T, float> & !((x > least) & (x < most)); };
    const auto quick = [within](T x) {
      const T y = within(x);
      return simd::quick_log(y / (T(1) - y));
    };
    const auto general = [within](T x) {
      const T y = within(x);
      return simd::log(y / (T(1) - y));
    };
    map_elements<T, T>("logit", out, InLanesUnless{quick, outside, general}, {&self});
  });
  return out;
}
Tensor sinc(const Tensor& self) {
  const DType dtype = floating_result(self.dtype());
  require_library(sleef_library());
  Tensor out = make_result("sinc", {&self}, dtype, dtype);
  dispatch_inexact(dtype, "sinc", [&]<class T>() -> void {
    const auto sine_of_angle = [](T x) -> T {
      if constexpr (kIsComplex<T>) {
        if (x == T(0)) return T(1);
        const T angle = x * static_cast<typename T::value_type>(M_PI);
        return std::sin(angle) / angle;
      } else {
        const T angle = static_cast<T>(M_PI) * x;
        return choose(x == T(0), T(1), simd::sin(angle) / angle);
      }
    };
    map_elements<T, T>("sinc", out, in_lanes<T>(sine_of_angle), {&self});
  });
  return out;
}
Tensor round_decimals(const Tensor& self, int64_t decimals) {
  if (decimals == 0) return round(self);
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), "round_decimals");
  Tensor out = make_result("round", {&self}, self.dtype(), self.dtype());
  const bool tens = decimals < 0;
  dispatch_floating(self.dtype(), "round_decimals", [&]<class T>() -> void {
    using C = ComputeType<T>;
    const C power = static_cast<C>(std::pow(10.0, static_cast<double>(std::abs(decimals))));
    map_elements<C, C>("round", out,
                       [=](C x) -> C {
                         if (tens) return std::nearbyint(x / power) * power;
                         return std::nearbyint(x * power) / power;
                       },
                       {&self});
  });
  return out;
}
std::array<Tensor, 2> frexp(const Tensor& self) {
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), "frexp");
  Tensor mantissa = empty_like(self), exponent = empty_like(self, DType::kInt32);
  dispatch_computed_float(self.dtype(), "frexp", [&]<class T>() -> void {
    map_elements<T, T>("frexp", mantissa,
                       [](T x) {
                         int power;
                         return std::frexp(x, &power);
                       },
                       {&self});
    map_elements<int32_t, T>("frexp", exponent,
                             [](T x) -> int32_t {
                               int power = 0;
                               if (!std::isfinite(x)) return 0;
                               (void)std::frexp(x, &power);
                               return power;
                             },
                             {&self});
  });
  return {mantissa, exponent};
}
Tensor mvlgamma(const Tensor& self, int64_t p) {
  SCONCE_CHECK(p >= 1, kInvalidArgument, "mvlgamma: p has to be greater than or equal to 1");
  const Tensor out = map_floats("mvlgamma", self, [p]<class T>(T x) -> T {
    T sum = static_cast<T>(static_cast<double>(p * (p - 1)) * 0.25 * std::log(M_PI));
    for (int64_t j = 0; j < p; ++j) sum += simd::lgamma(x - static_cast<T>(j) / T(2));
    return sum;
  });
  return contiguous(out);
}

}  // namespace sconce::cpu
