#include "src/ops/special.h"

#include <boost/math/special_functions/airy.hpp>
#include <boost/math/special_functions/bessel.hpp>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <boost/math/special_functions/polygamma.hpp>
#include <cmath>
#include <limits>

#include "sconce/check.h"
#include "src/ops/elementwise.h"
#include "src/ops/quiet_math.h"

namespace sconce::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kGrain = 1024;

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

double digamma_of(double x) {
  if (x == 0) return std::copysign(kInfinity, -x);
  if (std::isinf(x)) return x > 0 ? x : kNaN;
  if (std::isnan(x) || (x < 0 && x == std::trunc(x))) return kNaN;
  return boost::math::digamma(x, Quiet());
}
double lower_gamma(double a, double x) {
  if (x < 0 || a < 0 || std::isnan(a) || std::isnan(x)) return kNaN;
  if (a == 0) return x > 0 ? 1 : kNaN;
  if (x == 0) return 0;
  if (std::isinf(a)) return std::isinf(x) ? kNaN : 0;
  return std::isinf(x) ? 1 : boost::math::gamma_p(a, x, Quiet());
}
double upper_gamma(double a, double x) {
  const double lower = lower_gamma(a, x);
  if (std::isnan(lower) || lower == 0 || lower == 1) return 1 - lower;
  return boost::math::gamma_q(a, x, Quiet());
}

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
double spherical_j0(double x) {
  if (std::isinf(x)) return 0;
  return std::fabs(x) < 1e-4 ? 1 - x * x / 6 : std::sin(x) / x;
}

// Hurwitz' zeta function by the formula of Euler and Maclaurin, from the tenth term on.
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
  // Bernoulli numbers over factorials: B(2j) / (2j)!
  constexpr double kTerms[] = {1.0 / 12,
                               -1.0 / 720,
                               1.0 / 30240,
                               -1.0 / 1209600,
                               1.0 / 47900160,
                               -691.0 / 1307674368000.0,
                               1.0 / 74724249600.0,
                               -3617.0 / 10670622842880000.0};
  const double power = std::pow(a, -x);
  sum += power * a / (x - 1) + power / 2;
  double rising = x, scale = power / a;
  for (int j = 0; j < 8; ++j) {
    sum += kTerms[j] * rising * scale;
    rising *= (x + 2 * j + 1) * (x + 2 * j + 2);
    scale /= a * a;
  }
  return sum;
}
// exp(x^2) erfc(x)
double scaled_erfc(double x) {
  if (x < 25) return std::exp(x * x) * std::erfc(x);
  const double r = 1 / (2 * x * x);
  return (1 - r * (1 - 3 * r * (1 - 5 * r))) / (x * std::sqrt(M_PI));
}
double log_normal_cdf(double x) {
  const double t = x * M_SQRT1_2;
  return x < -1 ? std::log(scaled_erfc(-t) / 2) - t * t : std::log1p(-std::erfc(t) / 2);
}

// By recurrence from the first two: next(k, x, p[k], p[k - 1]).
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
double chebyshev_step(double, double x, double now, double before) { return 2 * x * now - before; }

}  // namespace

Tensor digamma(const Tensor& self) { return mapped("digamma", self, digamma_of); }
Tensor polygamma(int64_t n, const Tensor& self) {
  SCONCE_CHECK(n >= 0, kInvalidArgument, "polygamma(n, x) does not support negative n.");
  SCONCE_CHECK(n < 1000, kUnsupported, "polygamma: derivatives from 1000 on");
  if (n == 0) return digamma(self);
  const DType dtype = result_of("polygamma", self.dtype());
  Tensor out = make_result("polygamma", {&self}, dtype, dtype);
  map_elements<double, double>(
      "polygamma", out,
      [n](double x) {
        if (std::isnan(x)) return x;
        if (x <= 0 && x == std::trunc(x)) return n % 2 == 1 ? kInfinity : kNaN;
        return std::isinf(x) ? (x > 0 ? 0.0 : kNaN) : boost::math::polygamma(static_cast<int>(n), x, Quiet());
      },
      {&self}, kGrain);
  return out;
}
Tensor igamma(const Tensor& self, const Tensor& other) { return mapped("igamma", self, other, lower_gamma); }
Tensor igammac(const Tensor& self, const Tensor& other) { return mapped("igammac", self, other, upper_gamma); }
Tensor special_i0e(const Tensor& self) {
  return mapped("special_i0e", self, [](double x) { return scaled_i(0, x); });
}
Tensor special_i1e(const Tensor& self) {
  return mapped("special_i1e", self, [](double x) { return scaled_i(1, x); });
}
Tensor i0(const Tensor& self) {
  return mapped("i0", self, [](double x) { return boost::math::cyl_bessel_i(0, std::fabs(x), Quiet()); });
}
Tensor special_i1(const Tensor& self) {
  return mapped("special_i1", self,
                [](double x) { return std::copysign(boost::math::cyl_bessel_i(1, std::fabs(x), Quiet()), x); });
}
Tensor erfinv(const Tensor& self) {
  return mapped("erfinv", self, [](double x) {
    if (!(x >= -1 && x <= 1)) return kNaN;
    return std::fabs(x) == 1 ? std::copysign(kInfinity, x) : boost::math::erf_inv(x, Quiet());
  });
}
Tensor special_bessel_j0(const Tensor& self) {
  return mapped("special_bessel_j0", self,
                [](double x) { return std::isinf(x) ? 0 : boost::math::cyl_bessel_j(0, std::fabs(x), Quiet()); });
}
Tensor special_bessel_j1(const Tensor& self) {
  return mapped("special_bessel_j1", self, [](double x) {
    return std::isinf(x) ? 0 : std::copysign(1.0, x) * boost::math::cyl_bessel_j(1, std::fabs(x), Quiet());
  });
}
Tensor special_bessel_y0(const Tensor& self) {
  return mapped("special_bessel_y0", self, [](double x) { return second_kind(0, x); });
}
Tensor special_bessel_y1(const Tensor& self) {
  return mapped("special_bessel_y1", self, [](double x) { return second_kind(1, x); });
}
Tensor special_entr(const Tensor& self) {
  return mapped("special_entr", self, [](double x) {
    if (std::isnan(x)) return x;
    return x > 0 ? -x * std::log(x) : x == 0 ? 0.0 : -kInfinity;
  });
}
Tensor special_erfcx(const Tensor& self) { return mapped("special_erfcx", self, scaled_erfc); }
Tensor special_log_ndtr(const Tensor& self) { return mapped("special_log_ndtr", self, log_normal_cdf); }
Tensor special_zeta(const Tensor& self, const Tensor& other) {
  return mapped("special_zeta", self, other, hurwitz_zeta);
}
Tensor special_ndtri(const Tensor& self) { return mapped("special_ndtri", self, normal_quantile); }
Tensor special_airy_ai(const Tensor& self) { return mapped("special_airy_ai", self, airy); }
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
Tensor special_spherical_bessel_j0(const Tensor& x) { return mapped("special_spherical_bessel_j0", x, spherical_j0); }

Tensor special_chebyshev_polynomial_t(const Tensor& x, const Tensor& n) {
  return mapped("special_chebyshev_polynomial_t", x, n, [](double v, double k) {
    return polynomial(
        v, k, [](double y) { return y; }, chebyshev_step);
  });
}
Tensor special_chebyshev_polynomial_u(const Tensor& x, const Tensor& n) {
  return mapped("special_chebyshev_polynomial_u", x, n, [](double v, double k) {
    return polynomial(
        v, k, [](double y) { return 2 * y; }, chebyshev_step);
  });
}
Tensor special_chebyshev_polynomial_v(const Tensor& x, const Tensor& n) {
  return mapped("special_chebyshev_polynomial_v", x, n, [](double v, double k) {
    return polynomial(
        v, k, [](double y) { return 2 * y - 1; }, chebyshev_step);
  });
}
Tensor special_chebyshev_polynomial_w(const Tensor& x, const Tensor& n) {
  return mapped("special_chebyshev_polynomial_w", x, n, [](double v, double k) {
    return polynomial(
        v, k, [](double y) { return 2 * y + 1; }, chebyshev_step);
  });
}
Tensor special_shifted_chebyshev_polynomial_t(const Tensor& x, const Tensor& n) {
  return mapped("special_shifted_chebyshev_polynomial_t", x, n, [](double v, double k) {
    return polynomial(
        2 * v - 1, k, [](double y) { return y; }, chebyshev_step);
  });
}
Tensor special_shifted_chebyshev_polynomial_u(const Tensor& x, const Tensor& n) {
  return mapped("special_shifted_chebyshev_polynomial_u", x, n, [](double v, double k) {
    return polynomial(
        2 * v - 1, k, [](double y) { return 2 * y; }, chebyshev_step);
  });
}
Tensor special_shifted_chebyshev_polynomial_v(const Tensor& x, const Tensor& n) {
  return mapped("special_shifted_chebyshev_polynomial_v", x, n, [](double v, double k) {
    return polynomial(
        2 * v - 1, k, [](double y) { return 2 * y - 1; }, chebyshev_step);
  });
}
Tensor special_shifted_chebyshev_polynomial_w(const Tensor& x, const Tensor& n) {
  return mapped("special_shifted_chebyshev_polynomial_w", x, n, [](double v, double k) {
    return polynomial(
        2 * v - 1, k, [](double y) { return 2 * y + 1; }, chebyshev_step);
  });
}
Tensor special_hermite_polynomial_h(const Tensor& x, const Tensor& n) {
  return mapped("special_hermite_polynomial_h", x, n, [](double v, double degree) {
    return polynomial(
        v, degree, [](double y) { return 2 * y; },
        [](double k, double y, double now, double before) { return 2 * y * now - 2 * k * before; });
  });
}
Tensor special_hermite_polynomial_he(const Tensor& x, const Tensor& n) {
  return mapped("special_hermite_polynomial_he", x, n, [](double v, double degree) {
    return polynomial(
        v, degree, [](double y) { return y; },
        [](double k, double y, double now, double before) { return y * now - k * before; });
  });
}
Tensor special_laguerre_polynomial_l(const Tensor& x, const Tensor& n) {
  return mapped("special_laguerre_polynomial_l", x, n, [](double v, double degree) {
    return polynomial(
        v, degree, [](double y) { return 1 - y; },
        [](double k, double y, double now, double before) { return ((2 * k + 1 - y) * now - k * before) / (k + 1); });
  });
}
Tensor special_legendre_polynomial_p(const Tensor& x, const Tensor& n) {
  return mapped("special_legendre_polynomial_p", x, n, [](double v, double degree) {
    return polynomial(
        v, degree, [](double y) { return y; },
        [](double k, double y, double now, double before) { return ((2 * k + 1) * y * now - k * before) / (k + 1); });
  });
}

}  // namespace sconce::cpu
