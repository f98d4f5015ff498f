// The largest or smallest element of a packed row; NaN wins.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "src/cpu/vector/pooling_lanes.h"

namespace sconce {

template <bool kLargest, class T>
bool beats(T a, T b) noexcept {
  return kLargest ? a > b : a < b;
}
template <bool kLargest, class T>
T better(T a, T b) noexcept {
  if constexpr (std::is_integral_v<T>)
    return beats<kLargest>(b, a) ? b : a;
  else
    return beats<kLargest>(b, a) || std::isnan(b) ? b : a;  // once a is NaN, nothing beats it
}

namespace detail {

// All bits of a SIMD lane if either is NaN.
inline auto either_nan(PoolLanes<float>::Values a, PoolLanes<float>::Values b) noexcept {
  return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_UNORD_Q));
}
inline auto either_nan(PoolLanes<double>::Values a, PoolLanes<double>::Values b) noexcept {
  return _mm256_castpd_si256(_mm256_cmp_pd(a, b, _CMP_UNORD_Q));
}

}  // namespace detail

template <bool kLargest, class T>
T best_of(const T* values, int64_t count) noexcept {
  T best = values[0];
  int64_t i = 0;
  if constexpr (!std::is_same_v<T, bool>) {
    using L = PoolLanes<T>;
    using V = typename L::Values;
    using Place =
        std::conditional_t<sizeof(T) >= 4, typename L::Index, std::conditional_t<sizeof(T) == 2, int16_t, int8_t>>;
    typedef Place Places __attribute__((vector_size(32)));
    constexpr int kVectors = 4;
    // Ignores NaN, which is detected separately: one instruction, where choosing NaN takes three.
    const auto taken = [](V a, V b) -> V { return (kLargest ? b > a : b < a) ? b : a; };
    if (count >= L::kLanes) {
      V lanes[kVectors];
      for (V& lane : lanes) lane = L::load(values);
      __m256i nan = _mm256_setzero_si256();
      const auto look = [&](V a, V b) {
        if constexpr (!std::is_integral_v<T>) nan = _mm256_or_si256(nan, detail::either_nan(a, b));
      };
      look(lanes[0], lanes[0]);
      for (i = L::kLanes; i + kVectors * L::kLanes <= count; i += kVectors * L::kLanes) {
        V next[kVectors];
        for (int v = 0; v < kVectors; ++v) next[v] = L::load(values + i + v * L::kLanes);
        for (int v = 0; v < kVectors; v += 2) look(next[v], next[v + 1]);
        for (int v = 0; v < kVectors; ++v) lanes[v] = taken(lanes[v], next[v]);
      }
      for (; i + L::kLanes <= count; i += L::kLanes) {
        const V next = L::load(values + i);
        look(next, next);
        lanes[0] = taken(lanes[0], next);
      }
      if (!_mm256_testz_si256(nan, nan)) [[unlikely]]
        return *std::find_if(values, values + count, [](T x) { return x != x; });
      V all = taken(taken(lanes[0], lanes[1]), taken(lanes[2], lanes[3]));
      for (int half = L::kLanes / 2; half; half /= 2) {
        Places from;
        for (int lane = 0; lane < L::kLanes; ++lane) from[lane] = static_cast<Place>(lane ^ half);
        all = taken(all, __builtin_shuffle(all, from));
      }
      best = all[0];
    }
  }
  for (; i < count; ++i) best = better<kLargest>(best, values[i]);
  return best;
}

}  // namespace sconce
