// Sums over packed rows of float or double, in several vectors at once: some steps in the type itself, then in double.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "src/tensor/elements/convert.h"
#include "src/tensor/elements/dispatch.h"

namespace sconce {
namespace detail {

// Adds the elements of a vector in pairs, because in a chain each addition waits for the previous one.
template <class T, class Vector>
[[gnu::always_inline]] inline double lane_sum(const Vector& all) noexcept {
  if constexpr (sizeof(T) == 4) {
    const double a = (static_cast<double>(all[0]) + static_cast<double>(all[1])) +
                     (static_cast<double>(all[2]) + static_cast<double>(all[3]));
    const double b = (static_cast<double>(all[4]) + static_cast<double>(all[5])) +
                     (static_cast<double>(all[6]) + static_cast<double>(all[7]));
    return a + b;
  } else {
    return (all[0] + all[1]) + (all[2] + all[3]);
  }
}

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
    total += detail::lane_sum<T>(all);
  }
  for (; j < width; ++j) total += static_cast<double>(map(row[j]));
  return total;
}

}  // namespace detail

template <class T>
double row_sum(const T* row, int64_t width) noexcept {
  return detail::mapped_row_sum(row, width, [](auto x) { return x; });
}
// The sum of squared differences from `middle`, which may be any number near the mean.
template <class T>
double row_spread(const T* row, int64_t width, T middle) noexcept {
  return detail::mapped_row_sum(row, width, [middle](auto x) { return (x - middle) * (x - middle); });
}

// The sum of products a[j] * (b[j] - middle).
template <class T>
double row_dot(const T* a, const T* b, int64_t width, T middle = 0) noexcept {
  typedef T Vector __attribute__((vector_size(32), aligned(sizeof(T))));
  constexpr int64_t kLanes = 32 / sizeof(T), kVectors = 4, kWide = kLanes * kVectors, kSteps = 16;
  double total = 0;
  int64_t j = 0;
  while (j + kWide <= width) {
    Vector sums[kVectors] = {};
    const int64_t end = j + std::min(kSteps * kWide, (width - j) / kWide * kWide);
    for (; j < end; j += kWide)
      for (int v = 0; v < kVectors; ++v)
        sums[v] += *reinterpret_cast<const Vector*>(a + j + v * kLanes) *
                   (*reinterpret_cast<const Vector*>(b + j + v * kLanes) - middle);
    const Vector all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    total += detail::lane_sum<T>(all);
  }
  for (; j < width; ++j) total += static_cast<double>(a[j] * (b[j] - middle));
  return total;
}
template <class T>
double row_sum_but_nan(const T* row, int64_t width) noexcept {
  return detail::mapped_row_sum(row, width, [](auto x) { return x == x ? x : decltype(x){}; });
}

// The type in which elements of type T are summed.
template <class T>
using Total =
    std::conditional_t<kIsComplex<T>, ComplexDouble, std::conditional_t<std::is_integral_v<T>, int64_t, double>>;

// The sum of f(j) for all j below width. Several partial sums hide the latency of additions, and blocks keep small
// terms of long rows from being lost.
template <class Sum, class F>
Sum blockwise(int64_t width, const F& f) noexcept {
  constexpr int64_t kLanes = 8, kBlock = 1024;
  Sum total = 0;
  for (int64_t begin = 0; begin < width; begin += kBlock) {
    const int64_t end = std::min(width, begin + kBlock);
    Sum lanes[kLanes] = {};
    int64_t j = begin;
    for (; j + kLanes <= end; j += kLanes)
      for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += f(j + lane);
    for (; j < end; ++j) lanes[0] += f(j);
    for (int64_t lane = 1; lane < kLanes; ++lane) lanes[0] += lanes[lane];
    total += lanes[0];
  }
  return total;
}

// The sum of a row of any dtype.
template <class T>
Total<T> row_total(const T* row, int64_t width) noexcept {
  if constexpr (std::is_floating_point_v<T>) {
    return row_sum(row, width);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    constexpr int64_t kLanes = 32, kSteps = 16;
    double total = 0;
    int64_t j = 0;
    while (j + kLanes <= width) {
      float lanes[kLanes] = {};
      for (int step = 0; step < kSteps && j + kLanes <= width; ++step, j += kLanes)
        for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += static_cast<float>(row[j + lane]);
      total += row_sum(lanes, kLanes);
    }
    for (; j < width; ++j) total += static_cast<double>(static_cast<float>(row[j]));
    return total;
  } else if constexpr (std::is_same_v<Total<T>, double>) {  // other half types, as float
    constexpr int64_t kBlock = 512;
    float values[kBlock];
    double total = 0;
    for (int64_t begin = 0; begin < width; begin += kBlock) {
      const int64_t n = std::min(kBlock, width - begin);
      convert(kDType<T>, row + begin, DType::kFloat32, values, n);
      total += row_sum(values, n);
    }
    return total;
  } else if constexpr (kIsComplex<T>) {
    return blockwise<Total<T>>(width, [row](int64_t j) { return static_cast<Total<T>>(row[j]); });
  } else {
    constexpr int64_t kLanes = 16;
    uint64_t lanes[kLanes] = {}, total = 0;  // which wrap
    int64_t j = 0;
    for (; j + kLanes <= width; j += kLanes)
      for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += static_cast<uint64_t>(row[j + lane]);
    for (const uint64_t lane : lanes) total += lane;
    for (; j < width; ++j) total += static_cast<uint64_t>(row[j]);
    return static_cast<int64_t>(total);
  }
}

// totals[j] = the sum of x[r * stride + j] over all rows r, for `columns` of them, at most kColumns.
inline constexpr int64_t kColumns = 128;
template <class T>
void column_totals(const T* x, int64_t rows, int64_t columns, int64_t stride, double* totals) noexcept {
  static_assert(std::is_floating_point_v<T>);
  constexpr int64_t kSteps = 32;
  std::fill_n(totals, columns, 0.0);
  for (int64_t begin = 0; begin < rows; begin += kSteps) {
    T part[kColumns] = {};
    for (int64_t r = begin; r < std::min(begin + kSteps, rows); ++r) {
      const T* const row = x + r * stride;
      for (int64_t j = 0; j < columns; ++j) part[j] += row[j];
    }
    for (int64_t j = 0; j < columns; ++j) totals[j] += static_cast<double>(part[j]);
  }
}

}  // namespace sconce
