// The grid that a range of numbers is rounded to, for host and device code.
#pragma once

#include <cmath>
#include <cstdint>

#include "src/ops/host_device.h"

namespace sconce {

struct QuantisationGrid {
  double scale;
  int32_t zero_point;
};

// The affine grid of [low, high], which is widened to hold 0 exactly, and so that its scale is `smallest` or more.
SCONCE_HOST_DEVICE inline QuantisationGrid choose_grid(float low, float high, int64_t least, int64_t most,
                                                       bool symmetric, float smallest) {
  low = 0.0f < low ? 0.0f : low;
  high = high < 0.0f ? 0.0f : high;
  const bool both_sides = symmetric && low < 0 && high > 0;
  const auto steps = static_cast<double>(most - least);
  if (both_sides) {
    const auto lowest = static_cast<double>(-((most - least) / 2 + 1)),
               highest = static_cast<double>((most - least) / 2);
    const double below = std::fabs(low / lowest), above = std::fabs(high / highest);
    const double scale = below < above ? above : below;
    low = static_cast<float>(scale * lowest);
    high = static_cast<float>(scale * highest);
  }
  double scale = (static_cast<double>(high) - low) / steps;
  if (static_cast<float>(scale) == 0.0f || 1.0f / static_cast<float>(scale) > 3.402823466e38f) scale = 0.1;
  if (scale < smallest) {
    const auto before = static_cast<float>(scale);
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
  // From the end of the range whose rounding errs less.
  const double from_low = static_cast<double>(least) - low / scale,
               from_high = static_cast<double>(most) - high / scale;
  const double low_error = std::fabs(static_cast<double>(least)) - std::fabs(low / scale);
  const double high_error = std::fabs(static_cast<double>(most)) - std::fabs(high / scale);
  double zero = low_error < high_error ? from_low : from_high;
  if (both_sides) zero = static_cast<double>(least + most) / 2.0;
  if (zero < static_cast<double>(least)) return {scale, static_cast<int32_t>(least)};
  if (zero > static_cast<double>(most)) return {scale, static_cast<int32_t>(most)};
  return {scale, static_cast<int32_t>(std::nearbyint(zero))};
}

}  // namespace sconce
