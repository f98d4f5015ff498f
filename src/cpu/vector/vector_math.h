// Scalar functions in a form that the compiler vectorises: no calls, no branches. Polynomials are minimax fits to
// their interval. Always inline, since a call prevents vectorisation. Errors stay below 2 ulp, for error_function
// below 1e-7. NaN gives NaN.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "src/cpu/vector/powers.h"

namespace sconce {

// For two floats whose power is a normal number: base positive, finite, |exponent * log2 base| below 126. In double,
// to about 1e-11.
[[gnu::always_inline]] inline double power_of_normal(double base, double exponent) {
  // base = 2^k m, m from sqrt(1/2) to sqrt(2).
  constexpr uint64_t kRootHalf = 0x3FE6A09E667F3BCD, kBias = 1024;
  constexpr double kTwo52 = 4503599627370496.0, kRound = 1.5 * kTwo52;
  const auto bits = std::bit_cast<uint64_t>(base);
  const uint64_t biased = (bits - kRootHalf + (kBias << 52)) >> 52;
  const double k = std::bit_cast<double>(biased | std::bit_cast<uint64_t>(kTwo52)) - (kTwo52 + kBias);
  const double m = std::bit_cast<double>(bits - ((biased - kBias) << 52));
  // log2 m = 2 / ln 2 * (s + s^3 / 3 + ...), s = (m - 1) / (m + 1), |s| below 0.172.
  const double s = (m - 1) / (m + 1), z = s * s;
  double p = 1.0 / 13;
  p = std::fma(p, z, 1.0 / 11);
  p = std::fma(p, z, 1.0 / 9);
  p = std::fma(p, z, 1.0 / 7);
  p = std::fma(p, z, 1.0 / 5);
  p = std::fma(p, z, 1.0 / 3);
  const double power = exponent * std::fma(s * std::fma(p, z, 1.0), 2 / M_LN2, k);
  // 2^power = 2^n e^r, |r| <= ln(2) / 2.
  const double rounded = power + kRound, r = (power - (rounded - kRound)) * M_LN2;
  double e = 1.0 / 40320;
  e = std::fma(e, r, 1.0 / 5040);
  e = std::fma(e, r, 1.0 / 720);
  e = std::fma(e, r, 1.0 / 120);
  e = std::fma(e, r, 1.0 / 24);
  e = std::fma(e, r, 1.0 / 6);
  e = std::fma(e, r, 0.5);
  e = std::fma(e, r, 1.0);
  e = std::fma(e, r, 1.0);
  return std::bit_cast<double>(std::bit_cast<uint64_t>(e) + (std::bit_cast<uint64_t>(rounded) << 52));
}

// atan2(y, x).
[[gnu::always_inline]] inline float angle_of(float y, float x) {
  const bool steep = std::fabs(y) > std::fabs(x);
  const float longer = std::fabs(steep ? y : x), shorter = std::fabs(steep ? x : y);
  const float scale = longer > 1e38f ? 0.25f : 1.0f, most = longer * scale, least = shorter * scale;
  // Up to tan(pi/8) by a polynomial; beyond, atan(t) = pi/4 + atan((t - 1) / (t + 1)).
  const bool both_infinite = shorter > 3.4028235e38f, large = both_infinite || least > 0.41421356f * most;
  const float over = large ? least - most : least, under = large ? least + most : most;
  const float ratio = most == 0 || both_infinite ? 0.0f : over / under;
  const float z = ratio * ratio;
  float p = 0.0806030855f;
  p = std::fma(p, z, -0.138798505f);
  p = std::fma(p, z, 0.199779257f);
  p = std::fma(p, z, -0.333329558f);
  float angle = std::fma(p * z, ratio, ratio) + (large ? 0.785398163f : 0.0f);
  angle = steep ? 1.57079633f - angle : angle;
  angle = std::signbit(x) ? 3.14159265f - angle : angle;
  angle = std::copysign(angle, y);
  return x != x || y != y ? x + y : angle;
}

// e^x = 2^n * mantissa, of e^r with |r| <= ln(2)/2.
struct PowerOfE {
  float mantissa, n;
};
[[gnu::always_inline]] inline PowerOfE power_of_e(float x) {
  const float n = std::rint(x * 1.44269504f);
  float r = std::fma(n, -0.693145752f, x);
  r = std::fma(n, -1.42860677e-6f, r);
  float p = 0.00138131591f;
  p = std::fma(p, r, 0.00836941096f);
  p = std::fma(p, r, 0.041668456f);
  p = std::fma(p, r, 0.166665149f);
  p = std::fma(p, r, 0.499999931f);
  return {std::fma(p, r * r, r) + 1.0f, n};
}

[[gnu::always_inline]] inline float exponential(float x) {
  const float clamped = x < -104.0f ? -104.0f : x > 88.8f ? 88.8f : x;
  const PowerOfE power = power_of_e(clamped);
  // In two factors: neither 2^128 nor 2^-150 is a normal float.
  const int32_t i = static_cast<int32_t>(power.n), half = i >> 1;
  const float low = std::bit_cast<float>((half + 127) << 23), high = std::bit_cast<float>((i - half + 127) << 23);
  const float y = power.mantissa * low * high;
  return x != x ? x : y;
}

[[gnu::always_inline]] inline float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

// Up to 1.
[[gnu::always_inline]] inline float small_error_function(float x) {
  const float s = x * x;
  float p = 7.85385771e-05f;
  p = std::fma(p, s, -0.000801019252f);
  p = std::fma(p, s, 0.00518832756f);
  p = std::fma(p, s, -0.0268538119f);
  p = std::fma(p, s, 0.112835851f);
  p = std::fma(p, s, -0.376126258f);
  p = std::fma(p, s, 0.128379166f);
  return std::fma(p, x, x);
}
[[gnu::always_inline]] inline float error_function(float x) {
  const float magnitude = std::fabs(x), small = small_error_function(x);
  // From 1 on, 1 - e^-q(|x|), q fitted to -ln(erfc) up to 4, where erf is 1 in single precision.
  const float m = magnitude > 4.0f ? 4.0f : magnitude;
  float q = 2.16868499e-05f;
  q = std::fma(q, m, -0.000441336376f);
  q = std::fma(q, m, 0.00420456187f);
  q = std::fma(q, m, -0.0252082567f);
  q = std::fma(q, m, 0.108418577f);
  q = std::fma(q, m, 0.633219893f);
  q = std::fma(q, m, 1.12957842f);
  q = std::fma(q, m, -0.000188040223f);
  const float large = 1.0f - power(-q);
  return magnitude >= 1.0f ? std::copysign(large, x) : small;  // NaN goes through the polynomial
}

// erfc(x) = 1 - erf(x), from 0.5 on as t p(t) e^(-x^2), t = 1 / (1 + 0.4 x).
[[gnu::always_inline]] inline float complementary_error_function(float x) {
  const float magnitude = std::fabs(x);
  const float t = 1.0f / std::fma(0.4f, magnitude, 1.0f), u = t - 0.598425197f;
  float p = -1.873997871e-02f;
  p = std::fma(p, u, -3.248454784e-02f);
  p = std::fma(p, u, 4.582044527e-02f);
  p = std::fma(p, u, 6.865841792e-02f);
  p = std::fma(p, u, -9.026110789e-02f);
  p = std::fma(p, u, -1.719916525e-01f);
  p = std::fma(p, u, 1.119273879e-01f);
  p = std::fma(p, u, 6.068126234e-01f);
  p = std::fma(p, u, 8.974331822e-01f);
  p = std::fma(p, u, 8.032482032e-01f);
  p = std::fma(p, u, 4.925452770e-01f);
  // The rounding error of the square is included in its power.
  const float bounded = magnitude > 12.0f ? 12.0f : magnitude, square = bounded * bounded;
  const float lost = std::fma(bounded, bounded, -square), power = exponential(-square);
  const float tail = p * t * std::fma(-lost, power, power);
  const float large = x < 0.0f ? 2.0f - tail : tail;
  return magnitude >= 0.5f ? large : 1.0f - small_error_function(x);  // NaN goes through the latter
}

// power is e^(-x^2). Accurate to 2e-7 of 1 (Abramowitz and Stegun 7.1.26), which suffices for a sum with 1.
[[gnu::always_inline]] inline float coarse_error_function(float x, float power) {
  const float t = 1.0f / std::fma(0.3275911f, std::fabs(x), 1.0f);
  float p = 1.061405429f;
  p = std::fma(p, t, -1.453152027f);
  p = std::fma(p, t, 1.421413741f);
  p = std::fma(p, t, -0.284496736f);
  p = std::fma(p, t, 0.254829592f);
  return std::copysign(1.0f - p * t * power, x);
}

}  // namespace sconce
