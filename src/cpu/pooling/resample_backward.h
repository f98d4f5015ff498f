// Gradients of resizing and of padding by the border or its reflection. Floating dtypes, any strides; halves are
// summed in float and rounded once. Channels-last gradients give channels-last results, except for cubic and 3-D
// nearest resizing. Match ATen's CPU kernels, torch 2.15. kInvalidArgument for wrong sizes; kUnsupported for dtypes.
#pragma once

#include "sconce/tensor.h"
#include "src/tensor/spatial/resample_taps.h"

namespace sconce::cpu {

Tensor upsample_bilinear2d_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                    bool align_corners, OptScale scales_h, OptScale scales_w);
Tensor upsample_nearest1d_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size, OptScale scales);
Tensor upsample_nearest2d_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                   OptScale scales_h, OptScale scales_w);
Tensor upsample_nearest3d_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                   OptScale scales_d, OptScale scales_h, OptScale scales_w);
Tensor _upsample_nearest_exact1d_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                          OptScale scales);
Tensor _upsample_nearest_exact2d_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                          OptScale scales_h, OptScale scales_w);
Tensor _upsample_nearest_exact3d_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                          OptScale scales_d, OptScale scales_h, OptScale scales_w);

// padding: (before, after) from the last dimension on; negative ones crop.
Tensor replication_pad3d_backward(const Tensor& grad_output, const Tensor& self, IntSpan padding);
Tensor reflection_pad1d_backward(const Tensor& grad_output, const Tensor& self, IntSpan padding);
Tensor reflection_pad2d_backward(const Tensor& grad_output, const Tensor& self, IntSpan padding);
Tensor reflection_pad3d_backward(const Tensor& grad_output, const Tensor& self, IntSpan padding);

}  // namespace sconce::cpu
