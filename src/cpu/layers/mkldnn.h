// Convolutions and linear layers with weights that PyTorch packed with oneDNN, and with fused operations.
//
// Tensors are float32, float16 or bfloat16, sums float32. Weights are opaque (layout kMkldnn) or plain; bias [O] of any
// of these dtypes. Attributes: post_ops.h. Matches mkldnn::_convolution_pointwise, _linear_pointwise and
// their relatives (aten/src/ATen/native/mkldnn/{Conv,Linear}.cpp), torch 2.15.
// kInvalidArgument for shapes, dtypes and attributes that do not fit, kUnsupported for other dtypes and packings.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce::cpu {

using Scalars = std::span<const double* const>;
using OptionalText = std::optional<std::string_view>;

// X [N, C, ...], W [O, C/groups, ...]: activation(convolution). Channels last where X or W is, or where W is opaque.
Tensor mkldnn__convolution_pointwise(const Tensor& X, const Tensor& W, const Tensor* B, IntSpan padding, IntSpan stride,
                                     IntSpan dilation, int64_t groups, std::string_view attr, Scalars scalars,
                                     OptionalText algorithm);
// W [C, O/groups, ...].
Tensor mkldnn__convolution_transpose_pointwise(const Tensor& X, const Tensor& W, const Tensor* B, IntSpan padding,
                                               IntSpan output_padding, IntSpan stride, IntSpan dilation, int64_t groups,
                                               std::string_view attr, Scalars scalars, OptionalText algorithm);
// activation(convolution BINARY other); other broadcasts.
Tensor mkldnn__convolution_pointwise_binary(const Tensor& X, const Tensor& other, const Tensor& W, const Tensor* B,
                                            IntSpan padding, IntSpan stride, IntSpan dilation, int64_t groups,
                                            std::string_view binary_attr, std::optional<double> alpha,
                                            OptionalText unary_attr, Scalars unary_scalars,
                                            OptionalText unary_algorithm);
// other = activation(other + convolution), in place; returns it. other may be X.
Tensor mkldnn__convolution_pointwise_binary_(const Tensor& other, const Tensor& X, const Tensor& W, const Tensor* B,
                                             IntSpan padding, IntSpan stride, IntSpan dilation, int64_t groups,
                                             std::string_view binary_attr, std::optional<double> alpha,
                                             OptionalText unary_attr, Scalars unary_scalars,
                                             OptionalText unary_algorithm);

// X [..., K], W [N, K]: activation(X W^T + B), contiguous [..., N].
Tensor _linear_pointwise(const Tensor& X, const Tensor& W, const Tensor* B, std::string_view attr, Scalars scalars,
                         OptionalText algorithm);
// (X W^T + B) BINARY other; other has the result's rows and columns, or one of them.
Tensor _linear_pointwise_binary(const Tensor& X, const Tensor& other, const Tensor& W, const Tensor* B,
                                std::string_view attr);
// W holds MKL's own packing of origin_W and is not looked at.
Tensor _mkl_linear(const Tensor& X, const Tensor& W, const Tensor& origin_W, const Tensor* B,
                   int64_t prepack_batch_size);

}  // namespace sconce::cpu
