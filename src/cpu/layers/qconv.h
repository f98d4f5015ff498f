// Convolutions of quantised input and weight, in one to three dimensions. Matches onednn::qconv_pointwise and
// qconv2d_pointwise.binary, torch 2.15, which do not look at the weight's zero points.
//
// X [N, C, ...] of uint8 or float8_e4m3fn with one scale and zero point; weight [O, C/groups, ...] of int8
// (float8_e4m3fn where X is), packed by oneDNN or plain; its scales [O] or [1]; B [O] of a floating dtype.
// Result channels last, of output_dtype (uint8, int8, float32, bfloat16, float8_e4m3fn; X's without one). Activations
// none, relu, hardtanh, hardswish, swish. kInvalidArgument names what does not fit.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce::cpu {

Tensor _qconv_pointwise_tensor(const Tensor& X, const Tensor& act_scale, const Tensor& act_zero_point,
                               const Tensor& onednn_weight, const Tensor& weight_scales,
                               const Tensor& weight_zero_points, const Tensor* B, IntSpan stride, IntSpan padding,
                               IntSpan dilation, int64_t groups, double output_scale, int64_t output_zero_point,
                               std::optional<DType> output_dtype, std::string_view attr,
                               std::span<const double* const> post_op_args, std::optional<std::string_view> algorithm);
// The name before torch 2.8, for two dimensions only.
Tensor _qconv2d_pointwise_tensor(const Tensor& X, const Tensor& act_scale, const Tensor& act_zero_point,
                                 const Tensor& onednn_weight, const Tensor& weight_scales,
                                 const Tensor& weight_zero_points, const Tensor* B, IntSpan stride, IntSpan padding,
                                 IntSpan dilation, int64_t groups, double output_scale, int64_t output_zero_point,
                                 std::optional<DType> output_dtype, std::string_view attr,
                                 std::span<const double* const> post_op_args,
                                 std::optional<std::string_view> algorithm);
// The result replaces `accum` [N, O, ...], channels last, of its dtype: (accum - accum_zero_point) * accum_scale is
// added. binary_attr "sum", unary_attr none or relu.
Tensor _qconv2d_pointwise_binary_tensor(
    const Tensor& X, const Tensor& act_scale, const Tensor& act_zero_point, const Tensor& onednn_weight,
    const Tensor& weight_scales, const Tensor& weight_zero_points, const Tensor& accum, const Tensor* B,
    IntSpan stride_args, IntSpan padding_args, IntSpan dilation_args, int64_t groups, double output_scale,
    int64_t output_zero_point, std::optional<DType> output_dtype, double accum_scale, int64_t accum_zero_point,
    std::string_view binary_attr, std::optional<double> alpha, std::optional<std::string_view> unary_attr,
    std::span<const double* const> unary_scalars, std::optional<std::string_view> unary_algorithm);

}  // namespace sconce::cpu
