// Vectors of 32 bytes for pooling: values, and indices of the same width.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace sconce {

template <class T>
struct PoolLanes {
  using Index = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  static constexpr int kLanes = 32 / sizeof(T);
  typedef T Values __attribute__((vector_size(32)));
  typedef Index Indices __attribute__((vector_size(32)));

  static Values load(const T* from) {
    Values v;
    std::memcpy(&v, from, sizeof(v));
    return v;
  }
  // Elements 0, stride, 2 * stride, ... Reads nothing beyond the last of them. Stride: 1, 2, or 0 for any.
  template <int Stride>
  static Values load_spaced(const T* from, int64_t stride) {
    if constexpr (Stride == 1) {
      return load(from);
    } else if constexpr (Stride == 2) {
      // The second half starts one element early, at an odd distance.
      Indices pick;
      for (int i = 0; i < kLanes; ++i) pick[i] = i < kLanes / 2 ? 2 * i : 2 * i + 1;
      return __builtin_shuffle(load(from), load(from + kLanes - 1), pick);
    } else {
      Values v;
      for (int i = 0; i < kLanes; ++i) v[i] = from[i * stride];
      return v;
    }
  }
  static void store(T* to, Values v) { std::memcpy(to, &v, sizeof(v)); }
  static Values splat(T value) { return value - Values{}; }
  static Indices splat_index(int64_t value) { return static_cast<Index>(value) - Indices{}; }
  static Indices steps(int64_t step) {
    Indices v;
    for (int i = 0; i < kLanes; ++i) v[i] = static_cast<Index>(i * step);
    return v;
  }
  static void store_index(int64_t* to, Indices v) {
    for (int i = 0; i < kLanes; ++i) to[i] = v[i];
  }

  // Takes the larger value; NaN counts as the largest.
  static void take_larger(Values& best, Indices& at, Values value, Indices index) {
    const auto taken = (value > best) | (value != value);
    best = taken ? value : best;
    at = taken ? index : at;
  }
};

}  // namespace sconce
