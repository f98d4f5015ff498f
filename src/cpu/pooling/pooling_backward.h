// Gradients of pooling, and the inverse of max pooling. [N, C, (D,) H, W], N optional; settings as in pooling.h.
//
// Any strides; a result is channels-last where ATen's is. Half types are summed in float and rounded once. Indices are
// int64 offsets into a plane; one outside of it is kInvalidArgument (ATen's kernels write out of bounds). Match ATen's
// CPU kernels, torch 2.15.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce::cpu {

Tensor max_pool2d_with_indices_backward(const Tensor& grad_output, const Tensor& self, IntSpan kernel_size,
                                        IntSpan stride, IntSpan padding, IntSpan dilation, bool ceil_mode,
                                        const Tensor& indices);
Tensor max_pool3d_with_indices_backward(const Tensor& grad_output, const Tensor& self, IntSpan kernel_size,
                                        IntSpan stride, IntSpan padding, IntSpan dilation, bool ceil_mode,
                                        const Tensor& indices);
Tensor avg_pool2d_backward(const Tensor& grad_output, const Tensor& self, IntSpan kernel_size, IntSpan stride,
                           IntSpan padding, bool ceil_mode, bool count_include_pad,
                           std::optional<int64_t> divisor_override);
Tensor avg_pool3d_backward(const Tensor& grad_output, const Tensor& self, IntSpan kernel_size, IntSpan stride,
                           IntSpan padding, bool ceil_mode, bool count_include_pad,
                           std::optional<int64_t> divisor_override);
Tensor _adaptive_avg_pool2d_backward(const Tensor& grad_output, const Tensor& self);
Tensor _adaptive_avg_pool3d_backward(const Tensor& grad_output, const Tensor& self);
Tensor adaptive_max_pool2d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& indices);
Tensor adaptive_max_pool3d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& indices);

// Zeros but for the elements of self, which lie at their indices. Of two at one place the last stays.
Tensor max_unpool2d(const Tensor& self, const Tensor& indices, IntSpan output_size);
Tensor max_unpool3d(const Tensor& self, const Tensor& indices, IntSpan output_size, IntSpan stride, IntSpan padding);

}  // namespace sconce::cpu
