#include "src/cpu/elementwise/incomplete_gamma.h"

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/cpu/vector/lanes.h"
#include "src/cpu/vector/quiet_math.h"
#include "src/device/cpu_isa.h"

namespace sconce {
namespace {

// Boost's functions, exact to single precision.
using QuietSingle = policies::normalise<Quiet, policies::digits2<24>>::type;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// P at arguments where it is 0, 1 or undefined; else -1.
double at_ends(double a, double x) noexcept {
  if (x < 0 || a < 0) return kNaN;
  if (a == 0) return x > 0 ? 1 : kNaN;
  if (x == 0) return 0;
  if (std::isinf(a)) return std::isinf(x) ? kNaN : 0;
  if (std::isinf(x)) return 1;
  return std::isnan(a) || std::isnan(x) ? kNaN : -1;
}
template <class Policy>
double lower(double a, double x) {
  const double end = at_ends(a, x);
  return end == -1 ? boost::math::gamma_p(a, x, Policy()) : end;
}
template <class Policy>
double upper(double a, double x) {
  const double end = at_ends(a, x);
  return end == -1 ? boost::math::gamma_q(a, x, Policy()) : 1 - end;
}

// Vectors compute kSide results side by side, for orders from kMinOrder to kMaxOrder and arguments up to kFarthest.
// There the fractions below and 1 - P are exact to single precision after at most kMaxSteps steps.
constexpr double kMinOrder = 0.01, kMaxOrder = 30, kFarthest = 1000, kEnough = 1e-12;
constexpr int kSide = 16, kMaxSteps = 96;
constexpr int64_t kBlock = 256;

typedef double Eight __attribute__((vector_size(64)));
struct Side {
  Eight half[kSide / 8];
};
template <class F>
[[gnu::always_inline]] inline void each_half(const F& f) {
  for (int h = 0; h < kSide / 8; ++h) f(h);
}
[[gnu::always_inline]] inline bool any(const Side& flags) {
  Eight all = flags.half[0];
  for (int h = 1; h < kSide / 8; ++h) all += flags.half[h];
  double sum = 0;
  for (int i = 0; i < 8; ++i) sum += all[i];
  return sum > 0;
}

// 1 + x/(a+1) + x^2/((a+1)(a+2)) + ..., over one denominator, so that nothing is divided before the end.
[[gnu::always_inline]] inline void series(const Side& a, const Side& x, Side& sum) {
  Side numerator, denominator, power, factor = a;
  each_half([&](int h) { numerator.half[h] = denominator.half[h] = power.half[h] = Eight{} + 1.0; });
  for (int step = 0; step < kMaxSteps; step += 8) {
    for (int i = 0; i < 8; ++i)
      each_half([&](int h) {
        factor.half[h] += 1.0;
        power.half[h] *= x.half[h];
        denominator.half[h] *= factor.half[h];
        numerator.half[h] = numerator.half[h] * factor.half[h] + power.half[h];
      });
    Side more;
    each_half([&](int h) { more.half[h] = power.half[h] > kEnough * numerator.half[h] ? Eight{} + 1.0 : Eight{}; });
    if (!any(more)) break;
  }
  each_half([&](int h) { sum.half[h] = numerator.half[h] / denominator.half[h]; });
}

// 1 / (x+1-a - 1(1-a) / (x+3-a - 2(2-a) / (x+5-a - ...))), by the recurrence of its numerators and denominators.
[[gnu::always_inline]] inline void fraction(const Side& a, const Side& x, Side& value) {
  Side y, z, p, q, p_before, q_before;
  each_half([&](int h) {
    y.half[h] = 1.0 - a.half[h];
    z.half[h] = x.half[h] + y.half[h] + 1.0;
    p_before.half[h] = Eight{} + 1.0;
    q_before.half[h] = x.half[h];
    p.half[h] = x.half[h] + 1.0;
    q.half[h] = z.half[h] * x.half[h];
  });
  for (int step = 0; step < kMaxSteps; step += 8) {
    for (int i = 1; i <= 8; ++i)
      each_half([&](int h) {
        y.half[h] += 1.0;
        z.half[h] += 2.0;
        const Eight product = y.half[h] * static_cast<double>(step + i);
        const Eight next_p = p.half[h] * z.half[h] - p_before.half[h] * product;
        const Eight next_q = q.half[h] * z.half[h] - q_before.half[h] * product;
        p_before.half[h] = p.half[h];
        q_before.half[h] = q.half[h];
        p.half[h] = next_p;
        q.half[h] = next_q;
      });
    Side more;
    each_half([&](int h) {
      const Eight now = p.half[h] * q_before.half[h], change = now - p_before.half[h] * q.half[h];
      const Eight size = now < 0 ? -now : now, apart = change < 0 ? -change : change;
      more.half[h] = apart > kEnough * size ? Eight{} + 1.0 : Eight{};
    });
    if (!any(more)) break;
  }
  each_half([&](int h) { value.half[h] = p.half[h] / q.half[h]; });
}

// x^a e^-x / gamma(a + 1), gamma by Stirling's series from 9 on.
[[gnu::always_inline]] inline void scale_of(int64_t count, const double* a, const double* x, double* scale) {
  constexpr double kHalfLogOfTwoPi = 0.91893853320467274;
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const double z = a[i] + 9.0, r = 1.0 / z, s = r * r;
    const double tail = r * (1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s * (1.0 / 1680))));
    double rising = a[i] + 1.0;
    for (int k = 2; k <= 8; ++k) rising *= a[i] + k;
    const double log_gamma = (z - 0.5) * simd::log(z) - z + kHalfLogOfTwoPi + tail;
    scale[i] = rising * simd::exp(a[i] * simd::log(x[i]) - x[i] - log_gamma);
  }
}

struct Chosen {
  alignas(64) double a[kBlock + kSide], x[kBlock + kSide], value[kBlock + kSide], scale[kBlock + kSide];
  int32_t at[kBlock];
  int64_t count = 0;

  void add(double order, double place, int64_t i) noexcept {
    a[count] = order;
    x[count] = place;
    at[count++] = static_cast<int32_t>(i);
  }
};
template <bool kSeries>
[[gnu::always_inline]] inline void compute(Chosen& chosen) {
  std::fill_n(chosen.a + chosen.count, kSide, 1.0);
  std::fill_n(chosen.x + chosen.count, kSide, kSeries ? 1.0 : 3.0);
  for (int64_t begin = 0; begin < chosen.count; begin += kSide) {
    Side a, x, value;
    std::memcpy(&a, chosen.a + begin, sizeof(a));
    std::memcpy(&x, chosen.x + begin, sizeof(x));
    kSeries ? series(a, x, value) : fraction(a, x, value);
    std::memcpy(chosen.value + begin, &value, sizeof(value));
  }
  scale_of(chosen.count, chosen.a, chosen.x, chosen.scale);
}

// At most kBlock of them.
[[gnu::always_inline]] inline void block(const SingleGamma& gamma, int64_t count, double* out, const double* a,
                                         const double* x) {
  Chosen near, far;
  for (int64_t i = 0; i < count; ++i) {
    if (!(a[i] >= kMinOrder && a[i] <= kMaxOrder && x[i] > 0 && x[i] <= kFarthest))
      out[i] = gamma(a[i], x[i]);
    else
      (x[i] < a[i] + 1 ? near : far).add(a[i], x[i], i);
  }
  compute<true>(near);
  for (int64_t i = 0; i < near.count; ++i) {
    const double p = near.value[i] * near.scale[i];
    // If P is near 1, 1 - P would lose its digits.
    const bool lost = gamma.upper && p > 0.9;
    out[near.at[i]] = lost ? gamma(near.a[i], near.x[i]) : gamma.upper ? 1 - p : p;
  }
  compute<false>(far);
  for (int64_t i = 0; i < far.count; ++i) {
    const double q = far.value[i] * far.a[i] * far.scale[i];
    out[far.at[i]] = gamma.upper ? q : 1 - q;
  }
}
[[gnu::flatten]] void narrow(const SingleGamma& gamma, int64_t count, double* out, const double* a,
                             const double* x) noexcept {
  block(gamma, count, out, a, x);
}
[[gnu::flatten]] __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))) void wide(
    const SingleGamma& gamma, int64_t count, double* out, const double* a, const double* x) noexcept {
  block(gamma, count, out, a, x);
}

}  // namespace

double lower_gamma(double a, double x) { return lower<Quiet>(a, x); }
double upper_gamma(double a, double x) { return sconce::upper<Quiet>(a, x); }

// Not inlined: the vector code calls it for the few elements outside of its range.
[[gnu::noinline]] double SingleGamma::operator()(double a, double x) const {
  if (!upper) return lower<QuietSingle>(a, x);
  // For small orders Q is 1 - P, as exact as P.
  return a < 2 ? upper_gamma(a, x) : sconce::upper<QuietSingle>(a, x);
}
void SingleGamma::row(int64_t count, double* out, const double* a, const double* x) const noexcept {
  const auto run = has_avx512() ? wide : narrow;
  for (int64_t begin = 0; begin < count; begin += kBlock)
    run(*this, std::min(kBlock, count - begin), out + begin, a + begin, x + begin);
}

}  // namespace sconce
