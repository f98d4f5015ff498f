// Pooling over the last two or three dimensions of [N, C, (D,) H, W], N optional.
//
// Any strides; the result is channels-last where ATen's is. Indices are int64 offsets into an input plane; of equal
// maxima the first is taken, of NaNs the last. Half and bfloat16 are computed in float.
// kernel_size, stride and padding may hold one number for all dimensions; an empty stride is the kernel size.
// kInvalidArgument for shapes and settings that ATen refuses, kUnsupported for dtypes. Matches ATen's CPU kernels,
// torch 2.15.
#pragma once

#include <array>
#include <optional>

#include "sconce/tensor.h"

namespace sconce::cpu {

// Real dtypes. Output and indices.
std::array<Tensor, 2> max_pool2d_with_indices(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                                              IntSpan dilation, bool ceil_mode);
std::array<Tensor, 2> max_pool3d_with_indices(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                                              IntSpan dilation, bool ceil_mode);
// Floats and int64; avg_pool3d without half and bfloat16.
Tensor avg_pool2d(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding, bool ceil_mode,
                  bool count_include_pad, std::optional<int64_t> divisor_override);
Tensor avg_pool3d(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding, bool ceil_mode,
                  bool count_include_pad, std::optional<int64_t> divisor_override);

// Floats. Windows that tile the input, as even in size as they can be.
Tensor _adaptive_avg_pool2d(const Tensor& self, IntSpan output_size);
Tensor _adaptive_avg_pool3d(const Tensor& self, IntSpan output_size);
std::array<Tensor, 2> adaptive_max_pool2d(const Tensor& self, IntSpan output_size);
std::array<Tensor, 2> adaptive_max_pool3d(const Tensor& self, IntSpan output_size);

}  // namespace sconce::cpu
