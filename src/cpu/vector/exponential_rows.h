// Powers of e along packed rows of float or double, with the widest vectors of the CPU.
//
// Call require_library(sleef_library()) before.
#pragma once

#include <cstdint>

#include "src/cpu/vector/lanes.h"
#include "src/cpu/vector/row_sums.h"

namespace sconce {

// e^x of x up to 0, 0 below the smallest normal number.
[[gnu::always_inline]] inline float falling_power(float x) {
  constexpr float kLeast = -87.0f;
  const PowerOfE power = power_of_e(x < kLeast ? kLeast : x);
  const float y = power.mantissa * std::bit_cast<float>((static_cast<int32_t>(power.n) + 127) << 23);
  return x < kLeast ? 0.0f : y;
}
[[gnu::always_inline]] inline double falling_power(double x) { return simd::exp(x); }

namespace detail {

template <class T>
[[gnu::flatten]] double exponentials_narrow(const T* x, T base, T* to, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i) to[i] = falling_power(x[i] - base);
  return row_sum(to, n);
}
template <class T>
[[gnu::flatten]] __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))) double
exponentials_wide(const T* x, T base, T* to, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i) to[i] = falling_power(x[i] - base);
  return row_sum(to, n);
}

template <class T>
[[gnu::flatten]] void less_exponentials_narrow(const T* from, const T* x, T factor, T* to, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i] - simd::quick_exp(x[i]) * factor;
}
template <class T>
[[gnu::flatten]] __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))) void
less_exponentials_wide(const T* from, const T* x, T factor, T* to, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i] - simd::quick_exp(x[i]) * factor;
}

}  // namespace detail

// to[i] = from[i] - e^x[i] * factor
template <class T>
void less_exponentials(const T* from, const T* x, T factor, T* to, int64_t n) noexcept {
  (has_avx512() ? detail::less_exponentials_wide<T> : detail::less_exponentials_narrow<T>)(from, x, factor, to, n);
}

// to[i] = e^(x[i] - base), base no less than any x[i]; returns their sum.
template <class T>
double exponentials(const T* x, T base, T* to, int64_t n) noexcept {
  return has_avx512() ? detail::exponentials_wide(x, base, to, n) : detail::exponentials_narrow(x, base, to, n);
}

}  // namespace sconce
