// The largest or smallest element of a packed row; NaN before all.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "src/ops/pooling_lanes.h"

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

template <bool kLargest, class T>
T best_of(const T* values, int64_t count) noexcept {
  T best = values[0];
  int64_t i = 0;
  if constexpr (!std::is_same_v<T, bool>) {
    using L = PoolLanes<T>;
    using V = typename L::Values;
    constexpr int kVectors = 4;
    const auto taken = [](V a, V b) -> V {
      if constexpr (std::is_integral_v<T>)
        return (kLargest ? b > a : b < a) ? b : a;
      else
        return (kLargest ? b > a : b < a) | (b != b) ? b : a;
    };
    if (count >= L::kLanes) {
      V lanes[kVectors];
      for (V& lane : lanes) lane = L::load(values);
      for (i = L::kLanes; i + kVectors * L::kLanes <= count; i += kVectors * L::kLanes)
        for (int v = 0; v < kVectors; ++v) lanes[v] = taken(lanes[v], L::load(values + i + v * L::kLanes));
      for (; i + L::kLanes <= count; i += L::kLanes) lanes[0] = taken(lanes[0], L::load(values + i));
      const V all = taken(taken(lanes[0], lanes[1]), taken(lanes[2], lanes[3]));
      for (int lane = 0; lane < L::kLanes; ++lane) best = better<kLargest>(best, static_cast<T>(all[lane]));
    }
  }
  for (; i < count; ++i) best = better<kLargest>(best, values[i]);
  return best;
}

}  // namespace sconce
