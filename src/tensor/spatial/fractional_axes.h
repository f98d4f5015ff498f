// Checks the arguments of fractional max pooling and of its gradient. Match ATen, torch 2.15. kInvalidArgument "NAME:
// ..."; kUnsupported for dtypes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "src/tensor/strided_loop.h"

namespace sconce {

// Depth, height and width; with two dimensions the depth is 1.
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

}  // namespace sconce
