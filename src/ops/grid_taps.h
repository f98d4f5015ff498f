// Which elements of an input a place of a grid draws on, with which weights: grid_sampler's, for host and device code.
#pragma once

#include <cmath>
#include <cstdint>

#include "src/ops/host_device.h"

namespace sconce {

enum class GridInterpolation : int64_t { kLinear = 0, kNearest = 1, kCubic = 2 };
enum class GridPadding : int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };

// A coordinate in elements, and its derivative by the grid's coordinate.
template <class T>
struct GridPlace {
  T at, slope;
};

template <class T>
SCONCE_HOST_DEVICE GridPlace<T> grid_clipped(T at, int64_t size) noexcept {
  const auto last = static_cast<T>(size - 1);
  if (!(at > 0)) return {0, 0};  // NaN as well
  return at >= last ? GridPlace<T>{last, 0} : GridPlace<T>{at, 1};
}

// Between low / 2 and high / 2, folded over.
template <class T>
SCONCE_HOST_DEVICE GridPlace<T> grid_reflected(T at, int64_t twice_low, int64_t twice_high) noexcept {
  if (twice_low == twice_high) return {0, 0};
  const T low = static_cast<T>(twice_low) / 2, span = static_cast<T>(twice_high - twice_low) / 2;
  T sign = 1;
  at -= low;
  if (at < 0) {
    sign = -1;
    at = -at;
  }
  const T extra = std::fmod(at, span);
  const auto flips = static_cast<int64_t>(std::floor(at / span));
  return flips % 2 == 0 ? GridPlace<T>{extra + low, sign} : GridPlace<T>{span - extra + low, -sign};
}

template <class T>
SCONCE_HOST_DEVICE GridPlace<T> grid_unnormalised(T grid, int64_t size, bool align_corners) noexcept {
  if (align_corners) return {(grid + 1) / 2 * static_cast<T>(size - 1), static_cast<T>(size - 1) / 2};
  return {((grid + 1) * static_cast<T>(size) - 1) / 2, static_cast<T>(size) / 2};
}

template <class T>
SCONCE_HOST_DEVICE GridPlace<T> grid_padded(T at, int64_t size, GridPadding padding, bool align_corners) noexcept {
  if (padding == GridPadding::kBorder) return grid_clipped(at, size);
  if (padding == GridPadding::kReflection) {
    const GridPlace<T> fold =
        align_corners ? grid_reflected(at, 0, 2 * (size - 1)) : grid_reflected(at, int64_t{-1}, 2 * size - 1);
    const GridPlace<T> clip = grid_clipped(fold.at, size);
    return {clip.at, fold.slope * clip.slope};
  }
  return {at, 1};
}

template <class T>
SCONCE_HOST_DEVICE GridPlace<T> grid_source(T grid, int64_t size, GridPadding padding, bool align_corners) noexcept {
  const GridPlace<T> raw = grid_unnormalised(grid, size, align_corners),
                     in = grid_padded(raw.at, size, padding, align_corners);
  return {in.at, raw.slope * in.slope};
}

// Far away, infinite and NaN coordinates must not overflow: they end outside of the input.
template <class T>
SCONCE_HOST_DEVICE int64_t grid_whole(T value) noexcept {
  return value > T(-1e9) && value < T(1e9) ? static_cast<int64_t>(value) : -100;
}

struct GridGeometry {
  int dims;
  int64_t batch, channels, in_plane, out_plane;
  int64_t size[3];  // width, height, depth: the grid's order
  int64_t step[3];  // between neighbours in an input plane
  GridInterpolation interpolation;
  GridPadding padding;
  bool align_corners;
  bool nan_outside = false;  // of border and reflection: else NaN is the first element
};

// Whether folding leaves no number: that of NaN, and the reflection of what is infinite.
template <class T>
SCONCE_HOST_DEVICE bool grid_folded_nan(T grid, const GridGeometry& g) noexcept {
  return grid != grid || (g.padding == GridPadding::kReflection && grid - grid != 0);
}

// Input elements that a place draws on: offset in the plane (-1: outside), weight, and the weight's derivative by each
// coordinate of the grid.
template <class T>
struct GridTap {
  int64_t offset;
  T weight;
  T slope[3];
};

template <class T>
SCONCE_HOST_DEVICE T grid_cubic_near(T x) noexcept {
  constexpr T kA = T(-0.75);
  return ((kA + 2) * x - (kA + 3)) * x * x + 1;
}
template <class T>
SCONCE_HOST_DEVICE T grid_cubic_far(T x) noexcept {
  constexpr T kA = T(-0.75);
  return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA;
}
template <class T>
SCONCE_HOST_DEVICE void grid_cubic_weights(T t, T* weight, T* slope) noexcept {
  constexpr T kA = T(-0.75);
  weight[0] = grid_cubic_far(t + 1);
  weight[1] = grid_cubic_near(t);
  weight[2] = grid_cubic_near(1 - t);
  weight[3] = grid_cubic_far(2 - t);
  T x = t + 1;
  slope[0] = (3 * kA * x - 10 * kA) * x + 8 * kA;
  x = t;
  slope[1] = (3 * (kA + 2) * x - 2 * (kA + 3)) * x;
  x = 1 - t;
  slope[2] = -((3 * (kA + 2) * x - 2 * (kA + 3)) * x);
  x = 2 - t;
  slope[3] = -((3 * kA * x - 10 * kA) * x + 8 * kA);
}

// Returns how many taps were written: 1, 4, 8 or 16.
template <class T>
SCONCE_HOST_DEVICE int grid_taps(const GridGeometry& g, const T* grid, GridTap<T>* taps) noexcept {
  const auto offset_of = [&](const int64_t* at) {
    int64_t offset = 0;
    for (int d = 0; d < g.dims; ++d) {
      if (at[d] < 0 || at[d] >= g.size[d]) return int64_t{-1};
      offset += at[d] * g.step[d];
    }
    return offset;
  };
  int64_t at[3] = {};
  if (g.interpolation == GridInterpolation::kCubic) {
    T weight[2][4], slope[2][4], factor[2];
    int64_t first[2];
    for (int d = 0; d < 2; ++d) {
      const GridPlace<T> raw = grid_unnormalised(grid[d], g.size[d], g.align_corners);
      factor[d] = raw.slope;
      const T floor = std::floor(raw.at);
      first[d] = grid_whole(floor);
      grid_cubic_weights(raw.at - floor, weight[d], slope[d]);
    }
    for (int j = 0; j < 4; ++j)
      for (int i = 0; i < 4; ++i) {
        const int64_t raw[2] = {first[0] - 1 + i, first[1] - 1 + j};
        for (int d = 0; d < 2; ++d)
          at[d] = g.padding == GridPadding::kZeros
                      ? raw[d]
                      : grid_whole(grid_padded(static_cast<T>(raw[d]), g.size[d], g.padding, g.align_corners).at);
        taps[j * 4 + i] = {offset_of(at),
                           weight[0][i] * weight[1][j],
                           {slope[0][i] * weight[1][j] * factor[0], weight[0][i] * slope[1][j] * factor[1], 0}};
      }
    return 16;
  }
  GridPlace<T> place[3];
  for (int d = 0; d < g.dims; ++d) {
    place[d] = grid_source(grid[d], g.size[d], g.padding, g.align_corners);
    if (g.nan_outside && grid_folded_nan(grid[d], g)) place[d].at = grid[d] - grid[d];
  }
  if (g.interpolation == GridInterpolation::kNearest) {
    for (int d = 0; d < g.dims; ++d) at[d] = grid_whole(std::nearbyint(place[d].at));
    taps[0] = {offset_of(at), 1, {0, 0, 0}};
    return 1;
  }
  T upper[3];
  int64_t first[3];
  for (int d = 0; d < g.dims; ++d) {
    const T floor = std::floor(place[d].at);
    first[d] = grid_whole(floor);
    upper[d] = place[d].at - floor;
  }
  const int count = 1 << g.dims;
  for (int corner = 0; corner < count; ++corner) {
    GridTap<T>& tap = taps[corner];
    tap.weight = 1;
    T along[3];
    for (int d = 0; d < g.dims; ++d) {
      const bool high = corner >> d & 1;
      at[d] = first[d] + high;
      along[d] = high ? upper[d] : 1 - upper[d];
      tap.weight *= along[d];
    }
    for (int d = 0; d < g.dims; ++d) {
      tap.slope[d] = (corner >> d & 1 ? place[d].slope : -place[d].slope);
      for (int other = 0; other < g.dims; ++other)
        if (other != d) tap.slope[d] *= along[other];
    }
    tap.offset = offset_of(at);
  }
  return count;
}

}  // namespace sconce
