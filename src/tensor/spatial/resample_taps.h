// The input coordinates that contribute to an output coordinate of a resize, with their weights.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

namespace sconce {

// The contributions to one output coordinate: up to four input coordinates with their weights.
template <class T>
struct Taps {
  std::array<int64_t, 4> at{};
  std::array<T, 4> weight{};
};

using OptScale = std::optional<double>;  // output over input; none or 0: from the sizes

struct ResampledAxis {
  int64_t input = 1, output = 1;
  OptScale scale;
};

template <class T>
T resample_step(const ResampledAxis& axis, bool align_corners) noexcept {
  if (align_corners) return axis.output > 1 ? static_cast<T>(axis.input - 1) / static_cast<T>(axis.output - 1) : T(0);
  if (axis.scale && *axis.scale > 0) return static_cast<T>(1.0 / *axis.scale);
  return static_cast<T>(axis.input) / static_cast<T>(axis.output);
}

template <class T>
Taps<T> linear_taps(const ResampledAxis& axis, bool align_corners, int64_t o) noexcept {
  if (axis.input == axis.output) return {{o, o, o, o}, {1, 0, 0, 0}};
  const T scale = resample_step<T>(axis, align_corners);
  T real = align_corners ? scale * static_cast<T>(o) : scale * (static_cast<T>(o) + T(0.5)) - T(0.5);
  if (real < 0) real = 0;
  const int64_t first = std::min(static_cast<int64_t>(real), axis.input - 1);
  const T second_weight = std::clamp(real - static_cast<T>(first), T(0), T(1));
  return {{first, std::min(first + 1, axis.input - 1), first, first}, {1 - second_weight, second_weight, 0, 0}};
}

template <class T>
Taps<T> cubic_taps(const ResampledAxis& axis, bool align_corners, int64_t o) noexcept {
  constexpr T kA = T(-0.75);
  const T scale = resample_step<T>(axis, align_corners);
  const T real = align_corners ? scale * static_cast<T>(o) : scale * (static_cast<T>(o) + T(0.5)) - T(0.5);
  const auto first = static_cast<int64_t>(std::floor(real));
  const T t = real - static_cast<T>(first);
  const auto near = [](T x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; };
  const auto far = [](T x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
  Taps<T> taps{{}, {far(t + 1), near(t), near(1 - t), far(2 - t)}};
  for (size_t i = 0; i < 4; ++i)
    taps.at[i] = std::clamp<int64_t>(first - 1 + static_cast<int64_t>(i), 0, axis.input - 1);
  return taps;
}

enum class ResampleMode { kNearest, kNearestExact, kLinear, kCubic };

// The only input coordinate of a nearest-neighbour resize; exact: compares the centres of elements. by_sizes: a line
// that keeps its size or doubles it ignores the given scale. T: the type in which the coordinate is computed before it
// is rounded to float.
template <class T = float>
int64_t nearest_tap(const ResampledAxis& axis, bool exact, int64_t o, bool by_sizes = true) noexcept {
  if (by_sizes && !exact && axis.output == axis.input) return o;
  if (by_sizes && !exact && axis.output == 2 * axis.input) return o >> 1;
  const T at = (static_cast<T>(o) + (exact ? T(0.5) : T(0))) * resample_step<T>(axis, false);
  return std::min(static_cast<int64_t>(std::floor(static_cast<float>(at))), axis.input - 1);
}

constexpr size_t taps_of(ResampleMode mode) noexcept {
  return mode == ResampleMode::kCubic ? 4 : mode == ResampleMode::kLinear ? 2 : 1;
}
template <class T>
Taps<T> make_taps(ResampleMode mode, const ResampledAxis& axis, bool align_corners, int64_t o) noexcept {
  if (mode == ResampleMode::kLinear) return linear_taps<T>(axis, align_corners, o);
  if (mode == ResampleMode::kCubic) return cubic_taps<T>(axis, align_corners, o);
  return {{nearest_tap(axis, mode == ResampleMode::kNearestExact, o)}, {1, 0, 0, 0}};
}

}  // namespace sconce
