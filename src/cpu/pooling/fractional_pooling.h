// Fractional max pooling and its gradient: windows whose places are drawn from given random samples.
//
// self [N, C, (D,) H, W], N optional, random_samples [N, C, dims] in [0, 1) of self's dtype (2-D: width, then height;
// 3-D: depth, height, width). Floating dtypes, any strides; results are row-major; indices int64 offsets into a plane,
// which the gradients take as they lie in memory, as ATen's kernels for CPUs do.
// Match aten::fractional_max_pool2d and 3d (torch 2.15, CPU). kInvalidArgument; kUnsupported for dtypes.
#pragma once

#include <array>
#include <string_view>

#include "src/tensor/strided_loop.h"

namespace sconce::cpu {

std::array<Tensor, 2> fractional_max_pool2d(const Tensor& self, IntSpan kernel_size, IntSpan output_size,
                                            const Tensor& random_samples);
std::array<Tensor, 2> fractional_max_pool3d(const Tensor& self, IntSpan kernel_size, IntSpan output_size,
                                            const Tensor& random_samples);
Tensor fractional_max_pool2d_backward(const Tensor& grad_output, const Tensor& self, IntSpan kernel_size,
                                      IntSpan output_size, const Tensor& indices);
Tensor fractional_max_pool3d_backward(const Tensor& grad_output, const Tensor& self, IntSpan kernel_size,
                                      IntSpan output_size, const Tensor& indices);

}  // namespace sconce::cpu
