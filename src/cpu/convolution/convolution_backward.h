// Gradients of convolution. Match aten::convolution_backward (torch 2.15, CPU).
#pragma once

#include <array>
#include <optional>
#include <span>

#include "sconce/tensor.h"

namespace sconce::cpu {

// By input, weight and bias; those whose output_mask is 0 are undefined. Arguments as in convolution.h; floating
// dtypes, any strides. Each gradient is a convolution itself.
std::array<Tensor, 3> convolution_backward(const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                                           std::optional<IntSpan> bias_sizes, IntSpan stride, IntSpan padding,
                                           IntSpan dilation, bool transposed, IntSpan output_padding, int64_t groups,
                                           std::span<const int32_t> output_mask);

}  // namespace sconce::cpu
