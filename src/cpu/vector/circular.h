// Circular functions and their inverses in a form that the compiler vectorises, in addition to vector_math.h. Errors
// stay below 2 ulp. NaN gives NaN, and so do arguments outside of the inverses' domain.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace sconce {

// sine, cosine and tangent are exact up to here.
inline constexpr float kMaxOfAngle = 1e5f;

namespace detail {

// x = n pi / 2 + rest + lost, n in the lowest bits.
struct Quarter {
  float rest, lost;
  int32_t n;
};
[[gnu::always_inline]] inline Quarter quarter_of(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: a float this large has no fraction
  constexpr float kHigh = 1.57079637f, kMiddle = -4.37113883e-08f, kLow = -1.71512451e-15f;
  const float rounded = std::fma(x, 0.636619747f, kRound), n = rounded - kRound;
  const float near = std::fma(-n, kHigh, x);  // exact
  const float step = n * kMiddle, step_lost = std::fma(n, kMiddle, -step);
  const float rest = near - step, moved = rest - near;
  const float lost = (near - (rest - moved)) - (step + moved);
  return {rest, lost - std::fma(n, kLow, step_lost), std::bit_cast<int32_t>(rounded)};
}
// sin(x + n pi / 2) of such an x: by the sine or, if n is odd, by the cosine of the remainder.
[[gnu::always_inline]] inline float sine_of(const Quarter& x, int32_t n) {
  const float r = x.rest, z = r * r;
  float p = -0.000195178177f;
  p = std::fma(p, z, 0.00833216123f);
  p = std::fma(p, z, -0.166666552f);
  const float sine = r + std::fma(p * z, r, x.lost);
  float q = 2.44331568e-05f;
  q = std::fma(q, z, -0.00138873165f);
  q = std::fma(q, z, 0.0416666456f);
  const float most = std::fma(z, -0.5f, 1.0f), less = std::fma(z, -0.5f, 1.0f - most);
  const float cosine = most + std::fma(z * z, q, std::fma(-r, x.lost, less));
  const float y = (n & 1) != 0 ? cosine : sine;
  return std::bit_cast<float>(std::bit_cast<int32_t>(y) ^ (n << 30 & INT32_MIN));
}

}  // namespace detail

[[gnu::always_inline]] inline float sine(float x) {
  const detail::Quarter quarter = detail::quarter_of(x);
  return x == 0.0f ? x : detail::sine_of(quarter, quarter.n);  // -0 stays
}
[[gnu::always_inline]] inline float cosine(float x) {
  const detail::Quarter quarter = detail::quarter_of(x);
  return detail::sine_of(quarter, quarter.n + 1);
}
[[gnu::always_inline]] inline float tangent(float x) {
  const detail::Quarter quarter = detail::quarter_of(x);
  const float r = quarter.rest, z = r * r;
  float p = 0.00447918521f;
  p = std::fma(p, z, -0.000121197503f);
  p = std::fma(p, z, 0.011004149f);
  p = std::fma(p, z, 0.0212162137f);
  p = std::fma(p, z, 0.05407295f);
  p = std::fma(p, z, 0.133325458f);
  p = std::fma(p, z, 0.333333522f);
  const float bend = std::fma(p * z, r, quarter.lost), y = r + bend, missed = (r - y) + bend;
  const float inverse = -1.0f / y, turned = std::fma(inverse * inverse, missed, inverse);
  return x == 0.0f ? x : (quarter.n & 1) != 0 ? turned : y;  // -0 stays
}

[[gnu::always_inline]] inline float arc_tangent(float x) {
  const float magnitude = std::fabs(x);
  const bool steep = magnitude > 1.0f;
  const float d = (steep ? -1.0f : magnitude) / (steep ? magnitude : 1.0f), z = d * d;
  float p = -0.00182721927f;
  p = std::fma(p, z, 0.0110644614f);
  p = std::fma(p, z, -0.0314557217f);
  p = std::fma(p, z, 0.0582345426f);
  p = std::fma(p, z, -0.0841945633f);
  p = std::fma(p, z, 0.109575741f);
  p = std::fma(p, z, -0.142652452f);
  p = std::fma(p, z, 0.199986383f);
  p = std::fma(p, z, -0.333333015f);
  const float angle = std::fma(p * z, d, d);
  return std::copysign(steep ? 1.57079637f + (angle + -4.37113883e-08f) : angle, x);
}

namespace detail {

// (asin(s) - s) / s, of z = s^2 up to 1/4.
[[gnu::always_inline]] inline float arc_bend(float z) {
  float p = 0.0422182493f;
  p = std::fma(p, z, 0.0241477899f);
  p = std::fma(p, z, 0.0454770625f);
  p = std::fma(p, z, 0.0749524236f);
  p = std::fma(p, z, 0.166667536f);
  return p * z;
}

}  // namespace detail

// From 1/2 on, both inverses are those of s = sqrt((1 - |x|) / 2): asin(x) = pi / 2 - 2 asin(s).
[[gnu::always_inline]] inline float arc_sine(float x) {
  const float magnitude = std::fabs(x);
  const bool large = magnitude > 0.5f;
  const float z = large ? std::fma(magnitude, -0.5f, 0.5f) : magnitude * magnitude;
  const float s = large ? std::sqrt(z) : magnitude, bend = s * detail::arc_bend(z);
  const float twice = s + s, most = 1.57079637f - twice, lost = (1.57079637f - most) - twice;
  const float beyond = most + (lost + std::fma(-2.0f, bend, -4.37113883e-08f));
  return std::copysign(large ? beyond : s + bend, x);
}
[[gnu::always_inline]] inline float arc_cosine(float x) {
  const float magnitude = std::fabs(x);
  const bool large = magnitude > 0.5f, negative = x < 0;
  const float z = large ? std::fma(magnitude, -0.5f, 0.5f) : magnitude * magnitude;
  const float root = std::sqrt(z) * 2.0f, t = large ? (negative ? root : -root) : x;
  const float from = large ? (negative ? 3.14159274f : 0.0f) : 1.57079637f;
  const float rest = large ? (negative ? -8.74227766e-08f : 0.0f) : -4.37113883e-08f;
  return from - (t + std::fma(t, detail::arc_bend(z), -rest));
}

}  // namespace sconce
