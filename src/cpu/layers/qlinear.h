// Linear layers of quantised input and weight: y = act((x - x_zp) @ w * x_scale * w_scale + bias), requantised where
// the result is an integer. Matches onednn::qlinear_pointwise, torch 2.15, which does not look at the weight's zero
// points.
//
// X [..., K] of uint8, int8 or float8_e4m3fn with one scale and zero point; weight [K, N] of int8 (float8_e4m3fn where
// X is), packed by oneDNN or plain; its scales [N] or [1]; B [N] of a floating dtype. Result [..., N],
// contiguous, of output_dtype (uint8, int8, float32, bfloat16, float16, float8_e4m3fn; X's without one). Results of
// float8 inputs are divided by output_scale whatever their dtype. kInvalidArgument names what does not fit.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce {

// As fbgemm's layers compute it, whose weights have a zero point that counts. To uint8.
Tensor fbgemm_linear(const Tensor& x, const Tensor& x_scale, const Tensor& x_zero_point, const Tensor& weight,
                     const Tensor& scale, const Tensor& zero_point, const Tensor& bias, double output_scale,
                     int64_t output_zero_point);

namespace cpu {

Tensor _qlinear_pointwise_tensor(const Tensor& X, const Tensor& act_scale, const Tensor& act_zero_point,
                                 const Tensor& onednn_weight, const Tensor& weight_scales,
                                 const Tensor& weight_zero_points, const Tensor* B, double output_scale,
                                 int64_t output_zero_point, std::optional<DType> output_dtype,
                                 std::string_view post_op_name, std::span<const double* const> post_op_args,
                                 std::string_view post_op_algorithm);
// binary_post_op "none"; "sum": the result replaces `other`, of its dtype, which is added as (other - other_zero_point)
// * other_scale; "add": other of any of these dtypes, added as it is.
Tensor _qlinear_pointwise_binary_tensor(
    const Tensor& X, const Tensor& act_scale, const Tensor& act_zero_point, const Tensor& onednn_weight,
    const Tensor& weight_scales, const Tensor& weight_zero_points, const Tensor* other, const Tensor* B,
    double output_scale, int64_t output_zero_point, std::optional<DType> output_dtype, double other_scale,
    int64_t other_zero_point, std::string_view binary_post_op, double binary_alpha, std::string_view unary_post_op,
    std::span<const double* const> unary_post_op_args, std::string_view unary_post_op_algorithm);

}  // namespace cpu
}  // namespace sconce
