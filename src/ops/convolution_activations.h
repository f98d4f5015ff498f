// Scalar functions in a form that the compiler turns into vector code: no calls, no branches. Polynomials are minimax
// fits to their interval; errors stay below 2 ulp, for error_function below 1e-7. NaN gives NaN.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace sconce {

inline float exponential(float x) {
  // e^x = 2^n * e^r, |r| <= ln(2)/2.
  const float clamped = x < -104.0f ? -104.0f : x > 88.8f ? 88.8f : x;
  const float n = std::rint(clamped * 1.44269504f);
  float r = std::fma(n, -0.693145752f, clamped);
  r = std::fma(n, -1.42860677e-6f, r);
  float p = 0.00138131591f;
  p = std::fma(p, r, 0.00836941096f);
  p = std::fma(p, r, 0.041668456f);
  p = std::fma(p, r, 0.166665149f);
  p = std::fma(p, r, 0.499999931f);
  p = std::fma(p, r * r, r) + 1.0f;
  // In two factors: neither 2^128 nor 2^-150 is a normal float.
  const int32_t i = static_cast<int32_t>(n), half = i >> 1;
  const float low = std::bit_cast<float>((half + 127) << 23), high = std::bit_cast<float>((i - half + 127) << 23);
  const float y = p * low * high;
  return x != x ? x : y;
}

inline float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

inline float hyperbolic_tangent(float x) {
  const float magnitude = std::fabs(x);
  // Near zero a polynomial, since 1 - 2 / (e^2x + 1) cancels there.
  const float s = x * x;
  float p = -0.00566532498f;
  p = std::fma(p, s, 0.0206066992f);
  p = std::fma(p, s, -0.0537309379f);
  p = std::fma(p, s, 0.133313543f);
  p = std::fma(p, s, -0.333332796f);
  const float small = std::fma(p * s, x, x);
  const float large = 1.0f - 2.0f / (exponential(2.0f * magnitude) + 1.0f);
  return magnitude < 0.625f ? small : std::copysign(large, x);
}

inline float error_function(float x) {
  const float magnitude = std::fabs(x);
  const float s = x * x;
  float p = 7.85385771e-05f;
  p = std::fma(p, s, -0.000801019252f);
  p = std::fma(p, s, 0.00518832756f);
  p = std::fma(p, s, -0.0268538119f);
  p = std::fma(p, s, 0.112835851f);
  p = std::fma(p, s, -0.376126258f);
  p = std::fma(p, s, 0.128379166f);
  const float small = std::fma(p, x, x);
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
  const float large = 1.0f - exponential(-q);
  return magnitude >= 1.0f ? std::copysign(large, x) : small;  // NaN goes through the polynomial
}

}  // namespace sconce
