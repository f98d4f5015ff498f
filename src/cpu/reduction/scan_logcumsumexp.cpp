#include <cmath>
#include <limits>

#include "src/cpu/reduction/scan_loop.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"

namespace sconce::cpu {
namespace {

double log_add_exp(double x, double y) {
  const double low = std::isnan(y) ? y : std::min(x, y), high = std::isnan(y) ? y : std::max(x, y);
  return low != high || std::isfinite(low) ? std::log1p(std::exp(low - high)) + high : x;
}
float log_add_exp(float x, float y) {
  const float low = std::isnan(y) ? y : std::min(x, y), high = std::isnan(y) ? y : std::max(x, y);
  return low != high || std::isfinite(low) ? std::log1p(std::exp(low - high)) + high : x;
}

ComplexDouble complex_log1p(ComplexDouble z) {
  const double x = z.real(), y = z.imag(), angle = std::atan2(y, x + 1);
  if (std::abs(z) >= 0.5) return {std::log(std::hypot(x + 1, y)), angle};
  const double r = x * (2 + x) + y * y;
  return {r == 0 ? x : 0.5 * std::log1p(r), angle};
}

bool is_nan(ComplexDouble z) { return std::isnan(z.real()) || std::isnan(z.imag()); }

ComplexDouble log_add_exp(ComplexDouble x, ComplexDouble y) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (is_nan(x) || is_nan(y)) return {kNan, kNan};
  const bool x_low = x.real() < y.real();
  const ComplexDouble low = x_low ? x : y, high = x_low ? y : x;
  if (!std::isfinite(low.real()) && low.real() == high.real())
    return low.real() < 0 ? low : std::log(std::exp(low) + std::exp(high));
  return complex_log1p(std::exp(low - high)) + high;
}

template <class T>
struct LogSumExp {
  using Out = T;
  using State = std::conditional_t<kIsComplex<T>, ComplexDouble, std::conditional_t<kIsSmallFloat<T>, float, double>>;
  static State start() { return State(-std::numeric_limits<double>::infinity()); }
  static void step(State& state, T value, int64_t, char* out) {
    state = log_add_exp(static_cast<State>(value), state);
    *reinterpret_cast<T*>(out) = static_cast<T>(state);
  }
};

}  // namespace

Tensor logcumsumexp(const Tensor& self, int64_t dim) {
  dim = wrap_dim("logcumsumexp", dim, self.dim());
  Tensor out = Tensor::empty(self.sizes(), self.dtype());
  dispatch_floating_complex(self.dtype(), "logcumsumexp", [&]<class T>() {
    if (out.numel() == 0) return;
    if (self.dim() == 0) return copy(self, out);
    scan_loop<T>(ScanPlan(out, self, dim), out.data(), self.data(), LogSumExp<T>());
  });
  return out;
}

}  // namespace sconce::cpu
