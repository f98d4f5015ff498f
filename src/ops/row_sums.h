// Sums over packed rows of float or double, in several vectors at once: some steps in the type itself, then in double.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sconce {
namespace detail {

template <class T, class Map>
[[gnu::always_inline]] inline double mapped_row_sum(const T* row, int64_t width, const Map& map) noexcept {
  typedef T Vector __attribute__((vector_size(32), aligned(sizeof(T))));
  constexpr int64_t kLanes = 32 / sizeof(T), kVectors = 4, kWide = kLanes * kVectors, kSteps = 16;
  double total = 0;
  int64_t j = 0;
  while (j + kWide <= width) {
    Vector sums[kVectors] = {};
    const T* const end = row + j + std::min(kSteps * kWide, (width - j) / kWide * kWide);
    for (const T* at = row + j; at != end; at += kWide)
      for (int v = 0; v < kVectors; ++v) sums[v] += map(*reinterpret_cast<const Vector*>(at + v * kLanes));
    j = end - row;
    const Vector all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (int lane = 0; lane < kLanes; ++lane) total += static_cast<double>(all[lane]);
  }
  for (; j < width; ++j) total += static_cast<double>(map(row[j]));
  return total;
}

}  // namespace detail

template <class T>
double row_sum(const T* row, int64_t width) noexcept {
  return detail::mapped_row_sum(row, width, [](auto x) { return x; });
}
// Of the squared differences from `middle`, which may be any number near the mean.
template <class T>
double row_spread(const T* row, int64_t width, T middle) noexcept {
  return detail::mapped_row_sum(row, width, [middle](auto x) { return (x - middle) * (x - middle); });
}

}  // namespace sconce
