// Linear layer of quantised input and weight: y = act((x - x_zp) @ (w - w_zp) * x_scale * w_scale + bias), requantised
// where the result is an integer. Matches onednn::qlinear_pointwise, torch 2.15.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce::cpu {

// X [..., K] of uint8 or int8 with one scale and zero point; weight [K, N] of int8, packed by oneDNN or plain; scales
// and zero points [N] or [1]; B [N] float32 or bfloat16. Result [..., N], contiguous, of output_dtype (uint8, int8,
// float32, bfloat16; X's without one). kInvalidArgument names what does not fit.
Tensor _qlinear_pointwise_tensor(const Tensor& X, const Tensor& act_scale, const Tensor& act_zero_point,
                                 const Tensor& onednn_weight, const Tensor& weight_scales,
                                 const Tensor& weight_zero_points, const Tensor* B, double output_scale,
                                 int64_t output_zero_point, std::optional<DType> output_dtype,
                                 std::string_view post_op_name, std::span<const double* const> post_op_args,
                                 std::string_view post_op_algorithm);

}  // namespace sconce::cpu
