// Gradients of resizing and of padding by the border or its reflection. Floating dtypes, any strides; halves are summed
// in float and rounded once. Channels-last gradients give channels-last results, but for cubic and 3-D nearest
// resizing. Match ATen's CPU kernels, torch 2.15. kInvalidArgument for sizes that do not fit; kUnsupported for dtypes.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "sconce/tensor.h"

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

}  // namespace sconce::cpu
