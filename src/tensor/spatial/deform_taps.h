// The elements of an image that a tap of deform_conv2d reads, for host and device code. T: an element type; arithmetic
// rounds to it after each operation, as in torchvision. A coordinate that is NaN or infinite lies outside of the
// image.
#pragma once

#include <cmath>
#include <cstdint>

#include "src/tensor/elements/rounded.h"

namespace sconce {

// deform_conv2d's sizes. input [batch, channels, height, width], weight [out, channels / groups, kernel_height,
// kernel_width], offset [batch, offset_groups * kernel * 2, out_height, out_width] with the vertical one first, mask
// [batch, offset_groups * kernel, out_height, out_width].
struct DeformGeometry {
  int64_t batch, channels, height, width, out_channels, out_height, out_width;
  int64_t kernel_height, kernel_width, stride_height, stride_width, pad_height, pad_width;
  int64_t dilation_height, dilation_width, groups, offset_groups;
  bool masked;
  SCONCE_HOST_DEVICE int64_t out_plane() const noexcept { return out_height * out_width; }
  SCONCE_HOST_DEVICE int64_t kernel() const noexcept { return kernel_height * kernel_width; }
};
// Offsets in the plane of the four elements around a point (-1: outside, which counts as 0), and their weights.
template <class T>
struct DeformTap {
  using N = RoundedNumber<T>;
  using F = PlainNumber<T>;

  int64_t at[4];
  N weight[4];

  SCONCE_HOST_DEVICE DeformTap() noexcept {}
  SCONCE_HOST_DEVICE DeformTap(N y, N x, int64_t height, int64_t width) noexcept {
    const F place_y = static_cast<F>(y), place_x = static_cast<F>(x);
    if (!(place_y > F(-1) && place_y < static_cast<F>(height) && place_x > F(-1) && place_x < static_cast<F>(width))) {
      for (int i = 0; i < 4; ++i) {
        at[i] = -1;
        weight[i] = N(F(0));
      }
      return;
    }
    const F floor_y = std::floor(place_y), floor_x = std::floor(place_x);
    const auto row = static_cast<int64_t>(floor_y), column = static_cast<int64_t>(floor_x);
    const N low_y = y - N(floor_y), low_x = x - N(floor_x), one(F(1));
    const N high_y = one - low_y, high_x = one - low_x;
    const bool above = row >= 0, below = row + 1 < height, left = column >= 0, right = column + 1 < width;
    at[0] = above && left ? row * width + column : -1;
    at[1] = above && right ? row * width + column + 1 : -1;
    at[2] = below && left ? (row + 1) * width + column : -1;
    at[3] = below && right ? (row + 1) * width + column + 1 : -1;
    weight[0] = high_y * high_x;
    weight[1] = high_y * low_x;
    weight[2] = low_y * high_x;
    weight[3] = low_y * low_x;
  }

  SCONCE_HOST_DEVICE N value(const T* plane) const noexcept {
    N sum(F(0));
    for (int i = 0; i < 4; ++i) {
      const N term = weight[i] * (at[i] < 0 ? N(F(0)) : N(plane[at[i]]));
      sum = i == 0 ? term : sum + term;
    }
    return sum;
  }
};

}  // namespace sconce
