#include "src/cpu/elementwise/special.h"

#include <algorithm>
#include <boost/math/special_functions/airy.hpp>
#include <boost/math/special_functions/bessel.hpp>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <boost/math/special_functions/polygamma.hpp>
#include <cmath>
#include <limits>

#include "sconce/check.h"
#include "src/cpu/elementwise/computed.h"
#include "src/cpu/elementwise/incomplete_gamma.h"
#include "src/cpu/vector/function_table.h"
#include "src/cpu/vector/lanes.h"
#include "src/cpu/vector/quiet_math.h"
#include "src/tensor/elementwise.h"

namespace sconce::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kGrain = 1024;

// To single precision.
using QuietSingle = policies::normalise<Quiet, policies::digits2<24>>::type;

DType result_of(const char* name, DType dtype) {
  if (is_integral(dtype, true)) return DType::kFloat32;
  if (!is_floating(dtype)) fail_dispatch(dtype, name);
  return dtype;
}

struct Unary {
  double (*function)(double);
  double operator()(double x) const { return function(x); }
};
Tensor mapped(const char* name, const Tensor& self, double (*function)(double)) {
  const DType dtype = result_of(name, self.dtype());
  Tensor out = make_result(name, {&self}, dtype, dtype);
  map_elements<double, double>(name, out, Unary{function}, {&self}, kGrain);
  return out;
}
// A zero of a function. The table is not used around it, since the table's error is relative to the function's largest
// values.
struct Zero {
  double at = 0, around = 0;
};
// For results of single precision or less: within its bounds, the table is used.
struct Tabled {
  double (*function)(double);
  const FunctionTable* table;
  Zero zero;
  double operator()(double x) const {
    return table->holds(x) && std::fabs(x - zero.at) >= zero.around ? table->at(x) : function(x);
  }
};
Tensor mapped(const char* name, const Tensor& self, double (*function)(double), const FunctionTable& table,
              Zero zero = {}) {
  const DType dtype = result_of(name, self.dtype());
  if (dtype == DType::kFloat64) return mapped(name, self, function);
  Tensor out = make_result(name, {&self}, dtype, dtype);
  map_elements<double, double>(name, out, Tabled{function, &table, zero}, {&self}, kGrain);
  return out;
}
// f(T) -> T for lanes.
template <class F>
Tensor mapped_in_lanes(const char* name, const Tensor& self, F f) {
  require_library(sleef_library());
  const DType dtype = result_of(name, self.dtype());
  Tensor out = make_result(name, {&self}, dtype, dtype);
  dispatch_computed_float(dtype, name,
                          [&]<class T>() -> void { map_elements<T, T>(name, out, InLanes<F>{f}, {&self}, 8192); });
  return out;
}

// The same for odd functions: the table is of function(x) / x, so that it holds around 0 too.
struct TabledSlope {
  double (*function)(double);
  const FunctionTable* table;
  double operator()(double x) const { return table->holds(x) ? x * table->at(x) : function(x); }
};
Tensor mapped_odd(const char* name, const Tensor& self, double (*function)(double), const FunctionTable& slope) {
  const DType dtype = result_of(name, self.dtype());
  if (dtype == DType::kFloat64) return mapped(name, self, function);
  Tensor out = make_result(name, {&self}, dtype, dtype);
  map_elements<double, double>(name, out, TabledSlope{function, &slope}, {&self}, kGrain);
  return out;
}

struct Binary {
  double (*function)(double, double);
  double operator()(double a, double b) const { return function(a, b); }
};
Tensor mapped(const char* name, const Tensor& a, const Tensor& b, double (*function)(double, double)) {
  const DType dtype = result_of(name, ResultType().add(a).add(b).get());
  Tensor out = make_result(name, {&a, &b}, dtype, dtype);
  map_elements<double, double, double>(name, out, Binary{function}, {&a, &b}, kGrain);
  return out;
}
Tensor incomplete_gamma(const char* name, const Tensor& a, const Tensor& b, double (*function)(double, double),
                        SingleGamma of_single) {
  const DType dtype = result_of(name, ResultType().add(a).add(b).get());
  if (dtype == DType::kFloat64) return mapped(name, a, b, function);
  require_library(sleef_library());
  Tensor out = make_result(name, {&a, &b}, dtype, dtype);
  map_elements<double, double, double>(name, out, of_single, {&a, &b}, kGrain);
  return out;
}

double digamma_of(double x) {
  if (x == 0) return std::copysign(kInfinity, -x);
  if (std::isinf(x)) return x > 0 ? x : kNaN;
  if (std::isnan(x) || (x < 0 && x == std::trunc(x))) return kNaN;
  if (x > 0) return boost::math::digamma(x, Quiet());
  // By reflection; the distance from the pole is computed as exactly as x is given.
  return boost::math::digamma(1 - x, Quiet()) - M_PI / std::tan(M_PI * (x - std::nearbyint(x)));
}
// To single precision: above 0 by its series from 10 on, side by side.
struct SingleDigamma {
  double operator()(double x) const { return digamma_of(x); }
  void row(int64_t count, double* out, const double* x) const noexcept {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      const double z = x[i] + 10, r = 1 / z, s = r * r;
      double steps = 0;
      for (int k = 0; k < 10; ++k) steps += 1 / (x[i] + k);
      const double tail = s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240))));
      out[i] = simd::log(z) - r / 2 - tail - steps;
    }
    for (int64_t i = 0; i < count; ++i)
      if (!(x[i] > 1e-30 && x[i] < 1e30)) out[i] = digamma_of(x[i]);
  }
};

// exp(-|x|) I(x), which itself overflows: from 500 on by its asymptotic series.
double scaled_i(int order, double x) {
  const double size = std::fabs(x), sign = order == 1 && x < 0 ? -1 : 1;
  if (std::isnan(x)) return x;
  if (size < 500) return sign * std::exp(-size) * boost::math::cyl_bessel_i(order, size, Quiet());
  const double mu = 4.0 * order * order;
  double term = 1, sum = 1;
  for (int k = 1; k < 12; ++k) {
    term *= -(mu - (2 * k - 1) * (2 * k - 1)) / (k * 8 * size);
    sum += term;
  }
  return sign * sum / std::sqrt(2 * M_PI * size);
}
double second_kind(int order, double x) {
  if (x == 0) return -kInfinity;
  if (!(x > 0)) return kNaN;
  return std::isinf(x) ? 0 : boost::math::cyl_neumann(order, x, Quiet());
}
double bessel_k(int order, double x) {
  if (x == 0) return kInfinity;
  if (!(x > 0)) return kNaN;
  return std::isinf(x) ? 0 : boost::math::cyl_bessel_k(order, x, Quiet());
}
double scaled_k(int order, double x) {
  if (!(x > 500)) return bessel_k(order, x) * std::exp(x);
  const double mu = 4.0 * order * order;
  double term = 1, sum = 1;
  for (int k = 1; k < 12; ++k) {
    term *= (mu - (2 * k - 1) * (2 * k - 1)) / (k * 8 * x);
    sum += term;
  }
  return sum * std::sqrt(M_PI / (2 * x));
}
double normal_quantile(double p) {
  if (p == 0) return -kInfinity;
  if (p == 1) return kInfinity;
  if (!(p > 0 && p < 1)) return kNaN;
  return -M_SQRT2 * boost::math::erfc_inv(2 * p, Quiet());
}
double airy(double x) {
  if (std::isinf(x)) return kNaN;
  return x > 103.892 ? 0 : boost::math::airy_ai(x, Quiet());
}

// What the terms of Hurwitz' zeta function of x from a on add up to, by the formula of Euler and Maclaurin. a: about 10
// or more; power: a^-x.
[[gnu::always_inline]] inline double zeta_rest(double x, double a, double power) {
  // Bernoulli numbers over factorials: B(2j) / (2j)!
  constexpr double kTerms[] = {1.0 / 12,
                               -1.0 / 720,
                               1.0 / 30240,
                               -1.0 / 1209600,
                               1.0 / 47900160,
                               -691.0 / 1307674368000.0,
                               1.0 / 74724249600.0,
                               -3617.0 / 10670622842880000.0};
  double sum = power * a / (x - 1) + power / 2;
  const double inverse = 1 / (a * a);
  double rising = x, scale = power / a;
  for (int j = 0; j < 8; ++j) {
    sum += kTerms[j] * rising * scale;
    rising *= (x + 2 * j + 1) * (x + 2 * j + 2);
    scale *= inverse;
  }
  return sum;
}
// The function itself: the first ten terms one by one.
double hurwitz_zeta(double x, double q) {
  if (std::isnan(x) || std::isnan(q)) return kNaN;
  if (x == 1) return kInfinity;
  if (x < 1) return kNaN;
  if (q <= 0) {
    if (q == std::floor(q)) return kInfinity;
    if (x != std::floor(x)) return kNaN;
  }
  double sum = 0, a = q;
  for (int k = 0; k < 10 || a <= 10; ++k, a += 1) {
    const double term = std::pow(a, -x);
    sum += term;
    if (std::fabs(term) < 1e-17 * std::fabs(sum)) return sum;
  }
  return sum + zeta_rest(x, a, std::pow(a, -x));
}
template <class Policy>
struct Polygamma {
  int n;
  double operator()(double x) const {
    if (std::isnan(x) || x == (n == 1 ? -kInfinity : kInfinity)) return kNaN;
    if (x <= 0 && x == std::trunc(x)) return n % 2 == 1 ? kInfinity : -kInfinity;
    return std::isinf(x) ? 0.0 : boost::math::polygamma(n, x, Policy());
  }
};
// To single precision: above 0 the zeta function of n + 1, side by side, times n!.
struct SinglePolygamma {
  int n;
  double operator()(double x) const { return Polygamma<QuietSingle>{n}(x); }
  void row(int64_t count, double* out, const double* x) const noexcept {
    constexpr int64_t kSide = 64;
    constexpr int kMaxOrder = 16;  // beyond, the first Bernoulli numbers are too few
    for (int64_t begin = 0; begin < count; begin += kSide) {
      const int64_t side = std::min(kSide, count - begin);
      const double* const q = x + begin;
      double sum[kSide] = {}, root[kSide], power[kSide];
      for (int k = 0; n <= kMaxOrder && k <= 10; ++k) {
        for (int64_t i = 0; i < side; ++i) {
          root[i] = 1 / (q[i] + k);
          power[i] = root[i];
        }
        for (int m = 0; m < n; ++m)
          for (int64_t i = 0; i < side; ++i) power[i] *= root[i];
        for (int64_t i = 0; i < side; ++i) sum[i] += power[i];
      }
      const double sign = n % 2 == 1 ? 1 : -1, factorial = std::tgamma(n + 1.0);
      for (int64_t i = 0; i < side; ++i)  // the last term is the formula's
        sum[i] = sign * factorial * (sum[i] - power[i] + zeta_rest(n + 1, q[i] + 10, power[i]));
      for (int64_t i = 0; i < side; ++i)
        out[begin + i] = n <= kMaxOrder && q[i] > 1e-30 && q[i] < 1e12 ? sum[i] : (*this)(q[i]);
    }
  }
};
// exp(x^2) erfc(x)
double scaled_erfc(double x) {
  if (x < -27) return kInfinity;
  if (x < 25) {
    // x rounded to float has an exact square.
    const double high = static_cast<float>(x);
    return std::exp(high * high) * std::exp((x - high) * (x + high)) * std::erfc(x);
  }
  const double r = 1 / (2 * x * x);
  double series = 1;
  for (int k = 15; k > 0; k -= 2) series = 1 - k * r * series;
  return series / (x * std::sqrt(M_PI));
}
double log_normal_cdf(double x) {
  const double t = x * M_SQRT1_2;
  return x < -1 ? std::log(scaled_erfc(-t) / 2) - t * t : std::log1p(-std::erfc(t) / 2);
}

// Computes polynomials from the first two by the recurrence next(k, x, p[k], p[k - 1]).
template <class First, class Next>
double polynomial(double x, double degree, First first, Next next) {
  const auto n = static_cast<int64_t>(degree);
  if (n < 0) return 0;
  double before = 1, now = first(x);
  if (n == 0) return before;
  for (int64_t k = 1; k < n && !std::isnan(now); ++k) {
    const double after = next(static_cast<double>(k), x, now, before);
    before = now;
    now = after;
  }
  return now;
}
constexpr auto chebyshev_step = [](double, double x, double now, double before) { return 2 * x * now - before; };

// f: first and next of polynomial(), of argument(x).
template <class Argument, class First, class Next>
struct Polynomial {
  Argument argument;
  First first;
  Next next;
  double operator()(double x, double degree) const { return polynomial(argument(x), degree, first, next); }
  // If all elements have one degree, computes 64 of them side by side.
  void row(int64_t count, double* out, const double* x, const double* degree) const noexcept {
    constexpr int64_t kSide = 64;
    if (!std::all_of(degree, degree + count, [&](double d) { return d == degree[0]; }) ||
        !(degree[0] >= 1 && degree[0] < 4096)) {
      for (int64_t i = 0; i < count; ++i) out[i] = (*this)(x[i], degree[i]);
      return;
    }
    const auto n = static_cast<int64_t>(degree[0]);
    for (int64_t begin = 0; begin < count; begin += kSide) {
      const int64_t side = std::min(kSide, count - begin);
      double at[kSide], before[kSide], now[kSide];
      for (int64_t i = 0; i < side; ++i) {
        at[i] = argument(x[begin + i]);
        before[i] = 1;
        now[i] = first(at[i]);
      }
      for (int64_t k = 1; k < n; ++k)
        for (int64_t i = 0; i < side; ++i) {
          const double after = next(static_cast<double>(k), at[i], now[i], before[i]);
          before[i] = now[i];
          now[i] = after;
        }
      std::copy_n(now, side, out + begin);
    }
  }
};
constexpr auto kSame = [](double x) { return x; };
constexpr auto kShifted = [](double x) { return 2 * x - 1; };
template <class Argument, class First, class Next>
Tensor polynomials(const char* name, const Tensor& x, const Tensor& n, Argument argument, First first, Next next) {
  const DType dtype = result_of(name, ResultType().add(x).add(n).get());
  Tensor out = make_result(name, {&x, &n}, dtype, dtype);
  map_elements<double, double, double>(name, out, Polynomial<Argument, First, Next>{argument, first, next}, {&x, &n},
                                       kGrain);
  return out;
}

// In single precision: x times a polynomial of w = -log(1 - x^2), or of its root.
struct InverseError {
  template <class T>
  T operator()(T given) const {
    const auto x = static_cast<float>(given);
    const float w = -simd::log((1.0f - x) * (1.0f + x)), near = w - 2.5f, far = std::sqrt(w) - 3.16803399f;
    float p = 2.853432181e-08f;
    p = std::fma(p, near, 3.437264357e-07f);
    p = std::fma(p, near, -3.528853931e-06f);
    p = std::fma(p, near, -4.396774462e-06f);
    p = std::fma(p, near, 2.186021733e-04f);
    p = std::fma(p, near, -1.253707536e-03f);
    p = std::fma(p, near, -4.177707721e-03f);
    p = std::fma(p, near, 2.466407261e-01f);
    p = std::fma(p, near, 1.501409422f);
    float q = -1.597687824e-04f;
    q = std::fma(q, far, -1.322619202e-04f);
    q = std::fma(q, far, 1.262973427e-03f);
    q = std::fma(q, far, -2.347223712e-03f);
    q = std::fma(q, far, 3.245525467e-03f);
    q = std::fma(q, far, -4.659727873e-03f);
    q = std::fma(q, far, 6.409487293e-03f);
    q = std::fma(q, far, 1.004294946f);
    q = std::fma(q, far, 3.001526676f);
    const float result = x * simd::choose(w < 5.0f, p, q);
    return static_cast<T>(simd::choose(std::fabs(x) == 1.0f, std::copysign(static_cast<float>(kInfinity), x), result));
  }
};

}  // namespace

Tensor digamma(const Tensor& self) {
  const DType dtype = result_of("digamma", self.dtype());
  if (dtype == DType::kFloat64) return mapped("digamma", self, digamma_of);
  require_library(sleef_library());
  Tensor out = make_result("digamma", {&self}, dtype, dtype);
  map_elements<double, double>("digamma", out, SingleDigamma(), {&self}, kGrain);
  return out;
}
Tensor polygamma(int64_t n, const Tensor& self) {
  SCONCE_CHECK(n >= 0, kInvalidArgument, "polygamma(n, x) does not support negative n.");
  SCONCE_CHECK(n < 1000, kUnsupported, "polygamma: derivatives from 1000 on");
  if (n == 0) return digamma(self);
  const DType dtype = result_of("polygamma", self.dtype());
  Tensor out = make_result("polygamma", {&self}, dtype, dtype);
  if (dtype == DType::kFloat64)
    map_elements<double, double>("polygamma", out, Polygamma<Quiet>{static_cast<int>(n)}, {&self}, kGrain);
  else
    map_elements<double, double>("polygamma", out, SinglePolygamma{static_cast<int>(n)}, {&self}, kGrain);
  return out;
}
Tensor igamma(const Tensor& self, const Tensor& other) {
  return incomplete_gamma("igamma", self, other, lower_gamma, SingleGamma{false});
}
Tensor igammac(const Tensor& self, const Tensor& other) {
  return incomplete_gamma("igammac", self, other, upper_gamma, SingleGamma{true});
}
Tensor special_i0e(const Tensor& self) {
  constexpr auto kOf = [](double x) { return scaled_i(0, x); };
  static const FunctionTable kTable(kOf, -64, 64, 256);
  return mapped("special_i0e", self, kOf, kTable);
}
Tensor special_i1e(const Tensor& self) {
  static const FunctionTable kSlope([](double x) { return scaled_i(1, x) / x; }, -64, 64, 256);
  return mapped_odd(
      "special_i1e", self, [](double x) { return scaled_i(1, x); }, kSlope);
}
Tensor i0(const Tensor& self) {
  return mapped("i0", self, [](double x) { return boost::math::cyl_bessel_i(0, std::fabs(x), Quiet()); });
}
Tensor special_i1(const Tensor& self) {
  return mapped("special_i1", self,
                [](double x) { return std::copysign(boost::math::cyl_bessel_i(1, std::fabs(x), Quiet()), x); });
}
Tensor erfinv(const Tensor& self) {
  if (self.dtype() != DType::kFloat64) return mapped_in_lanes("erfinv", self, InverseError());
  return mapped("erfinv", self, [](double x) {
    if (!(x >= -1 && x <= 1)) return kNaN;
    return std::fabs(x) == 1 ? std::copysign(kInfinity, x) : boost::math::erf_inv(x, Quiet());
  });
}
Tensor special_bessel_j0(const Tensor& self) {
  constexpr auto kOf = [](double x) { return std::isinf(x) ? 0 : boost::math::cyl_bessel_j(0, std::fabs(x), Quiet()); };
  static const FunctionTable kTable(kOf, -32, 32, 128);
  return mapped("special_bessel_j0", self, kOf, kTable);
}
Tensor special_bessel_j1(const Tensor& self) {
  static constexpr auto kOf = [](double x) {
    return std::isinf(x) ? 0 : std::copysign(1.0, x) * boost::math::cyl_bessel_j(1, std::fabs(x), Quiet());
  };
  static const FunctionTable kSlope([](double x) { return kOf(x) / x; }, -32, 32, 128);
  return mapped_odd("special_bessel_j1", self, kOf, kSlope);
}
Tensor special_bessel_y0(const Tensor& self) {
  constexpr auto kOf = [](double x) { return second_kind(0, x); };
  static const FunctionTable kTable(kOf, 1, 33, 128);
  return mapped("special_bessel_y0", self, kOf, kTable);
}
Tensor special_bessel_y1(const Tensor& self) {
  constexpr auto kOf = [](double x) { return second_kind(1, x); };
  static const FunctionTable kTable(kOf, 1, 33, 128);
  return mapped("special_bessel_y1", self, kOf, kTable);
}
Tensor special_entr(const Tensor& self) {
  return mapped_in_lanes("special_entr", self, []<class T>(T x) -> T {
    const T product = -x * simd::log(x);
    return simd::choose(x > T(0) || x != x, product, x == T(0) ? T(0) : -std::numeric_limits<T>::infinity());
  });
}
Tensor special_erfcx(const Tensor& self) { return mapped("special_erfcx", self, scaled_erfc); }
Tensor special_log_ndtr(const Tensor& self) { return mapped("special_log_ndtr", self, log_normal_cdf); }
Tensor special_zeta(const Tensor& self, const Tensor& other) {
  return mapped("special_zeta", self, other, hurwitz_zeta);
}
Tensor special_ndtri(const Tensor& self) {
  // The table does not cover the tails, which bend too much.
  static const FunctionTable kTable(normal_quantile, 1.0 / 64, 63.0 / 64, 248);
  return mapped("special_ndtri", self, normal_quantile, kTable, {0.5, 1.0 / 64});
}
Tensor special_airy_ai(const Tensor& self) {
  static const FunctionTable kTable(airy, -12, 4, 128);
  return mapped("special_airy_ai", self, airy, kTable);
}
Tensor special_modified_bessel_k0(const Tensor& x) {
  return mapped("special_modified_bessel_k0", x, [](double v) { return bessel_k(0, v); });
}
Tensor special_modified_bessel_k1(const Tensor& x) {
  return mapped("special_modified_bessel_k1", x, [](double v) { return bessel_k(1, v); });
}
Tensor special_scaled_modified_bessel_k0(const Tensor& x) {
  return mapped("special_scaled_modified_bessel_k0", x, [](double v) { return scaled_k(0, v); });
}
Tensor special_scaled_modified_bessel_k1(const Tensor& x) {
  return mapped("special_scaled_modified_bessel_k1", x, [](double v) { return scaled_k(1, v); });
}
Tensor special_spherical_bessel_j0(const Tensor& x) {
  return mapped_in_lanes("special_spherical_bessel_j0", x, []<class T>(T v) -> T {
    const T quotient = simd::choose(v == T(0), T(1), simd::sin(v) / v);
    return std::fabs(v) == std::numeric_limits<T>::infinity() ? T(0) : quotient;
  });
}

// The polynomial of order 1 is `first`; step(k, y, polynomial of order k, of order k - 1) is that of order k + 1.
#define SCONCE_POLYNOMIAL(name, argument, first, step)                           \
  Tensor special_##name(const Tensor& x, const Tensor& n) {                      \
    return polynomials(                                                          \
        "special_" #name, x, n, argument, [](double y) { return first; }, step); \
  }
#define SCONCE_STEP(next) [](double k, double y, double now, double before) { return next; }
SCONCE_POLYNOMIAL(chebyshev_polynomial_t, kSame, y, chebyshev_step)
SCONCE_POLYNOMIAL(chebyshev_polynomial_u, kSame, 2 * y, chebyshev_step)
SCONCE_POLYNOMIAL(chebyshev_polynomial_v, kSame, 2 * y - 1, chebyshev_step)
SCONCE_POLYNOMIAL(chebyshev_polynomial_w, kSame, 2 * y + 1, chebyshev_step)
SCONCE_POLYNOMIAL(shifted_chebyshev_polynomial_t, kShifted, y, chebyshev_step)
SCONCE_POLYNOMIAL(shifted_chebyshev_polynomial_u, kShifted, 2 * y, chebyshev_step)
SCONCE_POLYNOMIAL(shifted_chebyshev_polynomial_v, kShifted, 2 * y - 1, chebyshev_step)
SCONCE_POLYNOMIAL(shifted_chebyshev_polynomial_w, kShifted, 2 * y + 1, chebyshev_step)
SCONCE_POLYNOMIAL(hermite_polynomial_h, kSame, 2 * y, SCONCE_STEP(2 * y * now - 2 * k * before))
SCONCE_POLYNOMIAL(hermite_polynomial_he, kSame, y, SCONCE_STEP(y* now - k * before))
SCONCE_POLYNOMIAL(laguerre_polynomial_l, kSame, 1 - y, SCONCE_STEP(((2 * k + 1 - y) * now - k * before) / (k + 1)))
SCONCE_POLYNOMIAL(legendre_polynomial_p, kSame, y, SCONCE_STEP(((2 * k + 1) * y * now - k * before) / (k + 1)))
#undef SCONCE_POLYNOMIAL
#undef SCONCE_STEP

}  // namespace sconce::cpu
