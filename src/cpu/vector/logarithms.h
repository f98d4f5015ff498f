// Logarithms of positive normal numbers in a form that the compiler vectorises, in addition to vector_math.h. Errors
// stay below 2 ulp.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace sconce {

// Whether the functions below hold for x: positive, normal, finite. One comparison of the bits.
[[gnu::always_inline]] inline bool has_logarithm(float x) {
  constexpr uint32_t kSmallest = 0x00800000, kInfinity = 0x7F800000;
  return std::bit_cast<uint32_t>(x) - kSmallest < kInfinity - kSmallest;
}

// Whether logarithm1p() does.
[[gnu::always_inline]] inline bool has_logarithm1p(float x) { return (x > -1.0f) & (x <= 3.40282347e38f); }

namespace detail {

// x = 2^power (1 + rest), 1 + rest from sqrt(1/2) to sqrt(2).
struct SplitFloat {
  float power, rest;
};
[[gnu::always_inline]] inline SplitFloat split(float x) {
  constexpr int32_t kRootHalf = 0x3F3504F3;
  const auto bits = std::bit_cast<int32_t>(x);
  const int32_t k = (bits - kRootHalf) >> 23;
  return {static_cast<float>(k), std::bit_cast<float>(bits - (k << 23)) - 1.0f};
}
// log(1 + f) - f
[[gnu::always_inline]] inline float log_bend(float f) {
  float p = -0.0785966516f;
  p = std::fma(p, f, 0.128816694f);
  p = std::fma(p, f, -0.131287381f);
  p = std::fma(p, f, 0.141811877f);
  p = std::fma(p, f, -0.166245565f);
  p = std::fma(p, f, 0.200022861f);
  p = std::fma(p, f, -0.250008106f);
  p = std::fma(p, f, 0.333333164f);
  return f * f * std::fma(p, f, -0.5f);
}
// large + small + rest, |large| at least |small| or 0: the rounding error of large + small is added to the rest.
[[gnu::always_inline]] inline float sum_of(float large, float small, float rest) {
  const float sum = large + small;
  return sum + (((large - sum) + small) + rest);
}
}  // namespace detail

[[gnu::always_inline]] inline float logarithm(float x) {
  const auto [n, f] = detail::split(x);
  const float rest = std::fma(n, 1.42860677e-6f, detail::log_bend(f));
  return detail::sum_of(n * 0.693145752f, f, rest);
}
// log(1 + x). NaN gives NaN.
[[gnu::always_inline]] inline float logarithm1p(float x) {
  const float sum = 1.0f + x, lost = x > 1.0f ? 1.0f - (sum - x) : x - (sum - 1.0f);
  const auto [n, near] = detail::split(sum);
  const float unit = std::bit_cast<float>((127 - static_cast<int32_t>(n)) << 23);  // 2^-n
  // Beyond 2^25 the rounding error of the sum does not affect the logarithm, and 2^-n may not be a normal number.
  const float f = near + lost * (n > 25.0f ? 0.0f : unit);  // NaN stays
  const float rest = std::fma(n, 1.42860677e-6f, detail::log_bend(f));
  return x == 0.0f ? x : detail::sum_of(n * 0.693145752f, f, rest);  // -0 stays
}
[[gnu::always_inline]] inline float logarithm2(float x) {
  constexpr float kLog2E = 1.44269502f, kLow = 1.92596303e-8f;
  const auto [n, f] = detail::split(x);
  const float large = f * kLog2E, lost = std::fma(f, kLog2E, -large);
  const float rest = std::fma(detail::log_bend(f), kLog2E, std::fma(f, kLow, lost));
  return detail::sum_of(n, large, rest);
}
[[gnu::always_inline]] inline float logarithm10(float x) {
  constexpr float kLog10E = 0.434294492f, kLow = -1.01030519e-8f;
  const auto [n, f] = detail::split(x);
  const float large = f * kLog10E, lost = std::fma(f, kLog10E, -large);
  const float rest = std::fma(detail::log_bend(f), kLog10E, std::fma(f, kLow, lost));
  return detail::sum_of(n * 0.301025391f, large, std::fma(n, 4.60503907e-6f, rest));
}

}  // namespace sconce
