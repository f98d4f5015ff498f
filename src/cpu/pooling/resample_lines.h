// Resampling along lines of [outer, from, inner]: every element of the result is a weighted sum of neighbours.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "src/device/threads.h"
#include "src/tensor/spatial/low_pass.h"

namespace sconce {

// Resamples [outer, from] to [outer, to] if each element has one or two neighbours. A single neighbour is used twice,
// each time with half its weight.
template <class T, class Weight>
void resample_pairs(const T* in, T* out, int64_t outer, int64_t from, const LineWindows& axis,
                    const std::vector<Weight>& weights) {
  const auto to = static_cast<int64_t>(axis.windows.size());
  std::vector<int32_t> low(axis.windows.size()), high(axis.windows.size());
  std::vector<T> low_weight(axis.windows.size()), high_weight(axis.windows.size());
  for (size_t i = 0; i < axis.windows.size(); ++i) {
    const int64_t count = axis.windows[i].count, window = static_cast<int64_t>(i);
    low[i] = static_cast<int32_t>(axis.place(window, 0));
    high[i] = static_cast<int32_t>(axis.place(window, count - 1));
    low_weight[i] = count == 1 ? weights[2 * i] / 2 : weights[2 * i];
    high_weight[i] = count == 1 ? weights[2 * i] / 2 : weights[2 * i + 1];
  }
  parallel_for(0, outer, std::max<int64_t>(1, 16384 / std::max<int64_t>(to, 1)),
               [&](int64_t begin, int64_t end) noexcept {
                 const int32_t *const l = low.data(), *const h = high.data();
                 const T *const a = low_weight.data(), *const b = high_weight.data();
                 for (int64_t row = begin; row < end; ++row) {
                   const T* const source = in + row * from;
                   T* const target = out + row * to;
#pragma GCC ivdep
                   for (int64_t i = 0; i < to; ++i) target[i] = source[l[i]] * a[i] + source[h[i]] * b[i];
                 }
               });
}

// [outer, from, inner] to [outer, to, inner]
template <class T, class Weight>
void resample(const T* in, T* out, int64_t outer, int64_t from, int64_t inner, const LineWindows& axis,
              const std::vector<Weight>& weights, int shift) {
  const auto to = static_cast<int64_t>(axis.windows.size());
  if constexpr (!std::is_same_v<T, uint8_t>)
    if (inner == 1 && axis.width == 2 && from <= INT32_MAX &&
        std::ranges::all_of(axis.windows, [](const LineWindows::Window& window) { return window.count > 0; }))
      return resample_pairs(in, out, outer, from, axis, weights);
  parallel_for(0, outer * to, std::max<int64_t>(1, 16384 / std::max<int64_t>(inner * axis.width, 1)),
               [&](int64_t begin, int64_t end) noexcept {
                 for (int64_t row = begin; row < end; ++row) {
                   const int64_t o = row / to, i = row % to;
                   const int64_t count = axis.windows[static_cast<size_t>(i)].count;
                   const Weight* const w = weights.data() + i * axis.width;
                   const auto neighbour = [&](int64_t j) { return in + (o * from + axis.place(i, j)) * inner; };
                   T* const target = out + row * inner;
                   if constexpr (!std::is_same_v<T, uint8_t>)
                     if (inner > 1 && count > 0) {
                       const T* source = neighbour(0);
                       for (int64_t x = 0; x < inner; ++x) target[x] = source[x] * w[0];
                       for (int64_t j = 1; j < count; ++j) {
                         source = neighbour(j);
                         for (int64_t x = 0; x < inner; ++x) target[x] += source[x] * w[j];
                       }
                       continue;
                     }
                   for (int64_t x = 0; x < inner; ++x) {
                     if constexpr (std::is_same_v<T, uint8_t>) {
                       int32_t sum = 1 << (shift - 1);
                       for (int64_t j = 0; j < count; ++j) sum += neighbour(j)[x] * w[j];
                       target[x] = static_cast<uint8_t>(std::clamp(sum >> shift, 0, 255));
                     } else {
                       T sum = 0;
                       for (int64_t j = 0; j < count; ++j) sum += neighbour(j)[x] * w[j];
                       target[x] = sum;
                     }
                   }
                 }
               });
}

// The transpose of resample.
template <class T>
void spread(const T* in, T* out, int64_t outer, int64_t from, int64_t inner, const LineWindows& axis) {
  const auto to = static_cast<int64_t>(axis.windows.size());
  std::fill_n(out, outer * from * inner, T(0));
  parallel_for(0, outer, 1, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t o = begin; o < end; ++o)
      for (int64_t i = 0; i < to; ++i) {
        const auto [first, count] = axis.windows[static_cast<size_t>(i)];
        const double* const w = axis.weights.data() + i * axis.width;
        const T* const source = in + (o * to + i) * inner;
        for (int64_t j = 0; j < count; ++j) {
          T* const target = out + (o * from + first + j) * inner;
          for (int64_t x = 0; x < inner; ++x) target[x] += source[x] * static_cast<T>(w[j]);
        }
      }
  });
}

// Weights of 16 bits, and the number of fraction bits: as many as the largest weight permits.
inline std::pair<std::vector<int16_t>, int> fixed_point(const LineWindows& axis) {
  double largest = 0;
  for (const double weight : axis.weights) largest = std::max(largest, weight);
  int shift = 0;
  while (shift < 22 && static_cast<int>(0.5 + largest * (1 << (shift + 1))) < (1 << 15)) ++shift;
  std::vector<int16_t> weights;
  for (const double weight : axis.weights)
    weights.push_back(static_cast<int16_t>((weight < 0 ? -0.5 : 0.5) + weight * (1 << shift)));
  return {std::move(weights), shift};
}

}  // namespace sconce
