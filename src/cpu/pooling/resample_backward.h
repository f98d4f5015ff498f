// Gradients of resizing and of padding by the border or its reflection. Floating dtypes, any strides; halves are summed
// in float and rounded once. Channels-last gradients give channels-last results, but for cubic and 3-D nearest
// resizing. Match ATen's CPU kernels, torch 2.15. kInvalidArgument for sizes that do not fit; kUnsupported for dtypes.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "sconce/tensor.h"
#include "src/cpu/pooling/resample_taps.h"

namespace sconce::cpu {

Tensor upsample_bilinear2d_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                    bool align_corners, std::optional<double> scales_h, std::optional<double> scales_w);
Tensor upsample_nearest1d_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                   std::optional<double> scales);
Tensor upsample_nearest2d_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                   std::optional<double> scales_h, std::optional<double> scales_w);
Tensor upsample_nearest3d_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                   std::optional<double> scales_d, std::optional<double> scales_h,
                                   std::optional<double> scales_w);
Tensor _upsample_nearest_exact1d_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                          std::optional<double> scales);
Tensor _upsample_nearest_exact2d_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                          std::optional<double> scales_h, std::optional<double> scales_w);
Tensor _upsample_nearest_exact3d_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                          std::optional<double> scales_d, std::optional<double> scales_h,
                                          std::optional<double> scales_w);

// padding: (before, after) from the last dimension on; negative ones crop.
Tensor replication_pad3d_backward(const Tensor& grad_output, const Tensor& self, IntSpan padding);
Tensor reflection_pad1d_backward(const Tensor& grad_output, const Tensor& self, IntSpan padding);
Tensor reflection_pad2d_backward(const Tensor& grad_output, const Tensor& self, IntSpan padding);
Tensor reflection_pad3d_backward(const Tensor& grad_output, const Tensor& self, IntSpan padding);

// What kernels need, checked. Axes are depth, height, width; of fewer dimensions the first are 1.
std::array<ResampledAxis, 3> resized_axes(std::string_view name, const Tensor& grad_output, IntSpan output_size,
                                          IntSpan input_size, const std::array<std::optional<double>, 3>& scales,
                                          int dims);
// How each axis draws on the input.
using ResampleModes = std::array<ResampleMode, 3>;
ResampleModes resample_modes(const std::array<ResampledAxis, 3>& axes, int dims, ResampleMode mode) noexcept;

struct PaddedSides {
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, before{0, 0, 0};
  // The input's coordinate that the padded one repeats.
  int64_t source(size_t axis, int64_t at, bool reflect) const noexcept;
};
PaddedSides padded_sides(std::string_view name, const Tensor& grad_output, const Tensor& self, IntSpan padding,
                         int dims);

}  // namespace sconce::cpu
