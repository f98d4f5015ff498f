// The gradient of a convolution by its weight.
#pragma once

#include "src/tensor/spatial/convolution_shape.h"

namespace sconce {

// For a plain convolution of `input` [N, C, ...] with `grad` [N, O, ...] of its output: row-major [O, C/groups,
// kernel...]. Floating dtypes; sums of small floats are float. Runs on the calling thread's team. Matches the weight's
// part of aten::convolution_backward, torch 2.15.
Tensor convolution_weight_gradient(const ConvolutionShape& shape, const Tensor& input, const Tensor& grad,
                                   IntSpan weight_sizes);

}  // namespace sconce
