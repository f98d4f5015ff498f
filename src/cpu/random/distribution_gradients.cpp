#include "src/cpu/random/distribution_gradients.h"

#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <limits>

#include "sconce/check.h"
#include "src/cpu/elementwise/computed.h"
#include "src/cpu/vector/quiet_math.h"

namespace sconce::cpu {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kGrain = 256;

// d log(f) / d a by differences of the fourth order.
template <class F>
double log_slope(double a, const F& f) {
  const double h = 1e-3 * a;
  const auto at = [&](double step) { return std::log(f(a + step * h)); };
  return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h);
}

// From the smaller of the two tails, whose logarithm is smooth: -d(lower)/da / density = d(upper)/da / density.
template <class Lower, class Upper>
double sample_slope(double a, double density, const Lower& lower, const Upper& upper) {
  const double low = lower(a), high = upper(a);
  const double slope = low < high ? -low * log_slope(a, lower) : high * log_slope(a, upper);
  const double result = slope / density;
  return std::isfinite(result) ? result : 0;
}

double gamma_slope(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || a <= 0 || x < 0) return a == 0 ? 0 : kNaN;
  if (x == 0) return 0;
  return sample_slope(
      a, boost::math::gamma_p_derivative(a, x, Quiet()), [x](double s) { return boost::math::gamma_p(s, x, Quiet()); },
      [x](double s) { return boost::math::gamma_q(s, x, Quiet()); });
}

double beta_slope(double x, double a, double total) {
  const double b = total - a;
  if (!(x >= 0 && x <= 1) || !(a > 0) || !(b > 0)) return kNaN;
  if (x == 0 || x == 1) return 0;
  const double density = boost::math::ibeta_derivative(a, b, x, Quiet()) * (1 - x);
  return sample_slope(
      a, density, [=](double s) { return boost::math::ibeta(s, b, x, Quiet()); },
      [=](double s) { return boost::math::ibetac(s, b, x, Quiet()); });
}

void check_one_dtype(const char* name, const Tensor& a, const Tensor& b) {
  if (!is_floating(a.dtype())) fail_dispatch(a.dtype(), name);
  SCONCE_CHECK(a.dtype() == b.dtype(), kInvalidArgument, name, ": Found dtype ", dtype_name(b.dtype()),
               " but expected ", dtype_name(a.dtype()));
}

}  // namespace

Tensor _standard_gamma_grad(const Tensor& self, const Tensor& output) {
  constexpr const char* kName = "_standard_gamma_grad";
  check_one_dtype(kName, self, output);
  Tensor out = make_result(kName, {&self, &output}, self.dtype(), self.dtype());
  map_elements<double, double, double>(
      kName, out, [](double a, double x) { return gamma_slope(a, x); }, {&self, &output}, kGrain);
  return out;
}
Tensor _dirichlet_grad(const Tensor& x, const Tensor& alpha, const Tensor& total) {
  constexpr const char* kName = "_dirichlet_grad";
  check_one_dtype(kName, x, alpha);
  check_one_dtype(kName, x, total);
  Tensor out = make_result(kName, {&x, &alpha, &total}, x.dtype(), x.dtype());
  map_elements<double, double, double, double>(
      kName, out, [](double x, double a, double total) { return beta_slope(x, a, total); }, {&x, &alpha, &total},
      kGrain);
  return out;
}

}  // namespace sconce::cpu
