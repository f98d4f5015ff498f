// The grid to which a range of numbers is rounded, for host and device code.
#pragma once

#include <cmath>
#include <cstdint>

#include "src/tensor/elements/host_device.h"

namespace sconce {

struct QuantisationGrid {
  float scale;
  int32_t zero_point;
};

// The affine grid of [low, high], which is widened to hold 0 exactly, and so that its scale is at least `smallest`.
SCONCE_HOST_DEVICE inline QuantisationGrid choose_grid(float low, float high, int64_t least, int64_t most,
                                                       bool symmetric, float smallest) {
  low = 0.0f < low ? 0.0f : low;
  high = high < 0.0f ? 0.0f : high;
  const bool both_sides = symmetric && low < 0 && high > 0;
  const auto steps = static_cast<double>(most - least);
  if (both_sides) {
    const auto lowest = static_cast<double>(-((most - least) / 2 + 1)),
               highest = static_cast<double>((most - least) / 2);
    // Divided in float, as ATen's are.
    const double below = std::fabs(low / static_cast<float>(lowest)),
                 above = std::fabs(high / static_cast<float>(highest));
    const double step = below < above ? above : below;
    low = static_cast<float>(step * lowest);
    high = static_cast<float>(step * highest);
  }
  // The zero point is computed from the scale as stored.
  auto scale = static_cast<float>((static_cast<double>(high) - low) / steps);
  if (scale == 0.0f || 1.0f / scale > 3.402823466e38f) scale = 0.1f;
  if (scale < smallest) {
    const float before = scale;
    scale = smallest;
    if (low == 0.0f) {
      high = smallest * static_cast<float>(steps);
    } else if (high == 0.0f) {
      low = -smallest * static_cast<float>(steps);
    } else {
      const float widen = smallest / before;
      low *= widen;
      high *= widen;
    }
  }
  // Computes the zero point from the end of the range with the smaller terms, which has the smaller rounding error.
  const double below_zero = low / static_cast<double>(scale), above_zero = high / static_cast<double>(scale);
  const double low_error = std::fabs(static_cast<double>(least)) + std::fabs(below_zero);
  const double high_error = std::fabs(static_cast<double>(most)) + std::fabs(above_zero);
  double zero =
      low_error < high_error ? static_cast<double>(least) - below_zero : static_cast<double>(most) - above_zero;
  if (both_sides) zero = static_cast<double>(least + most) / 2.0;
  if (zero < static_cast<double>(least)) return {scale, static_cast<int32_t>(least)};
  if (zero > static_cast<double>(most)) return {scale, static_cast<int32_t>(most)};
  return {scale, static_cast<int32_t>(std::nearbyint(zero))};
}

}  // namespace sconce
