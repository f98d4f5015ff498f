// The input elements that contribute to a sample of grid_sampler, with their weights, for host and device code.
#pragma once

#include <cmath>
#include <cstdint>

#include "src/tensor/elements/host_device.h"

namespace sconce {

enum class GridInterpolation : int64_t { kLinear = 0, kNearest = 1, kCubic = 2 };
enum class GridPadding : int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };
// The coordinate for NaN after folding: NaN itself, and the reflection of an infinity.
enum class GridNan : int64_t { kFirst, kLast, kOutside };

// A coordinate in elements, and its derivative by the grid's coordinate.
template <class T>
struct GridPlace {
  T at, slope;
};

template <class T>
SCONCE_HOST_DEVICE GridPlace<T> grid_clipped(T at, int64_t size) noexcept {
  const auto last = static_cast<T>(size - 1);
  if (at <= 0) return {0, 0};
  return at >= last ? GridPlace<T>{last, 0} : GridPlace<T>{at, 1};
}

// Folds into the range from low / 2 to high / 2.
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

// Far away, infinite and NaN coordinates must not overflow: they become coordinates outside of the input.
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
  GridNan nan = GridNan::kFirst;
  // Whether a tap outside of the input counts as zero times its weight, which matters for a weight of NaN.
  bool outside_counts = true;
};

// A coordinate in elements along axis `d`, folded into the input if the padding mode requires it.
template <class T>
SCONCE_HOST_DEVICE GridPlace<T> grid_padded(const GridGeometry& g, int d, T at) noexcept {
  if (g.padding == GridPadding::kZeros) return {at, 1};
  const int64_t size = g.size[d];
  GridPlace<T> fold{at, 1};
  if (g.padding == GridPadding::kReflection)
    fold = g.align_corners ? grid_reflected(at, 0, 2 * (size - 1)) : grid_reflected(at, int64_t{-1}, 2 * size - 1);
  const GridPlace<T> clip = grid_clipped(fold.at, size);
  if (clip.at != clip.at && g.nan != GridNan::kOutside)
    return {g.nan == GridNan::kLast ? static_cast<T>(size - 1) : T(0), 0};
  return {clip.at, fold.slope * clip.slope};
}

template <class T>
SCONCE_HOST_DEVICE GridPlace<T> grid_source(const GridGeometry& g, int d, T grid) noexcept {
  const GridPlace<T> raw = grid_unnormalised(grid, g.size[d], g.align_corners), in = grid_padded(g, d, raw.at);
  return {in.at, raw.slope * in.slope};
}

// Input elements of a sample: offset in the plane (-1: outside), weight, and the weight's derivative by each
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

// The four elements along one axis that a cubic interpolation uses, around the coordinate before it is folded.
template <class T>
struct GridCubic {
  int64_t at[4];          // -1: outside
  T weight[4], slope[4];  // slope: the weight's derivative by the grid's coordinate

  GridCubic() = default;
  SCONCE_HOST_DEVICE GridCubic(const GridGeometry& g, int d, T grid) noexcept {
    const GridPlace<T> raw = grid_unnormalised(grid, g.size[d], g.align_corners);
    const T floor = std::floor(raw.at);
    grid_cubic_weights(raw.at - floor, weight, slope);
    for (int i = 0; i < 4; ++i) {
      slope[i] *= raw.slope;
      const T folded = grid_padded(g, d, floor + static_cast<T>(i - 1)).at;
      at[i] = folded >= 0 && folded < static_cast<T>(g.size[d]) ? static_cast<int64_t>(folded) : -1;
    }
  }
};

inline constexpr int kMaxGridTaps = 64;

// The number of taps per sample: 1, 4, 8, 16 or 64.
SCONCE_HOST_DEVICE inline int grid_tap_count(const GridGeometry& g) noexcept {
  if (g.interpolation == GridInterpolation::kNearest) return 1;
  return g.interpolation == GridInterpolation::kCubic ? 1 << (2 * g.dims) : 1 << g.dims;
}

// Writes grid_tap_count(g) taps. Those outside keep their weights.
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
    const GridCubic<T> x(g, 0, grid[0]), y(g, 1, grid[1]);
    GridCubic<T> z{};
    if (g.dims == 3) z = GridCubic<T>(g, 2, grid[2]);
    int count = 0;
    for (int k = 0; k < (g.dims == 3 ? 4 : 1); ++k)
      for (int j = 0; j < 4; ++j)
        for (int i = 0; i < 4; ++i) {
          const int64_t places[3] = {x.at[i], y.at[j], g.dims == 3 ? z.at[k] : 0};
          GridTap<T>& tap = taps[count++];
          tap = {offset_of(places),
                 x.weight[i] * y.weight[j],
                 {x.slope[i] * y.weight[j], x.weight[i] * y.slope[j], x.weight[i] * y.weight[j]}};
          if (g.dims == 3) {
            tap.weight *= z.weight[k];
            tap.slope[0] *= z.weight[k];
            tap.slope[1] *= z.weight[k];
            tap.slope[2] *= z.slope[k];
          }
        }
    return count;
  }
  GridPlace<T> place[3];
  for (int d = 0; d < g.dims; ++d) place[d] = grid_source(g, d, grid[d]);
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
