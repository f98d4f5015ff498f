// Observed and simulated quantisation. Match aten::_fused_moving_avg_obs_fq_helper (torch 2.15, CPU).
#pragma once

#include <array>

#include "sconce/tensor.h"

namespace sconce::cpu {

// {self rounded to the grid of scale and zero_point, whether an element was not clamped}. Floating dtypes. Match
// aten::fake_quantize_per_tensor_affine_cachemask, _fake_quantize_per_tensor_affine_cachemask_tensor_qparams and
// fake_quantize_per_channel_affine_cachemask.
std::array<Tensor, 2> fake_quantize_per_tensor_affine_cachemask(const Tensor& self, double scale, int64_t zero_point,
                                                                int64_t quant_min, int64_t quant_max);
std::array<Tensor, 2> _fake_quantize_per_tensor_affine_cachemask_tensor_qparams(const Tensor& self, const Tensor& scale,
                                                                                const Tensor& zero_point,
                                                                                const Tensor& fake_quant_enabled,
                                                                                int64_t quant_min, int64_t quant_max);
std::array<Tensor, 2> fake_quantize_per_channel_affine_cachemask(const Tensor& self, const Tensor& scale,
                                                                 const Tensor& zero_point, int64_t axis,
                                                                 int64_t quant_min, int64_t quant_max);

}  // namespace sconce::cpu
