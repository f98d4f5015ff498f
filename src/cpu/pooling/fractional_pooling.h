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

// What kernels need, checked: depth, height, width; of two dimensions the depth is 1.
struct FractionalAxis {
  int64_t input = 1, output = 1, kernel = 1;
};
using FractionalAxes = std::array<FractionalAxis, 3>;
FractionalAxes fractional_axes(std::string_view name, const Tensor& self, IntSpan kernel_size, IntSpan output_size,
                               int dims);
Shape fractional_sizes(const Tensor& self, IntSpan output_size);
void check_fractional_samples(std::string_view name, const Tensor& self, const Tensor& random_samples, int dims);
// Returns the sizes of the pooled side.
Shape check_fractional_gradient(std::string_view name, const Tensor& grad_output, const Tensor& self,
                                IntSpan output_size, const Tensor& indices, int dims);

}  // namespace sconce::cpu
