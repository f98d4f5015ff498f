// Observed and simulated quantisation. Match aten::_fused_moving_avg_obs_fq_helper (torch 2.15, CPU).
#pragma once

#include <array>

#include "sconce/tensor.h"

namespace sconce::cpu {

// Where observer_on is not 0: running_min and running_max [1], or [C] with per_row, move towards self's range (by
// channel ch_axis) by averaging_const, from infinity at once. Where fake_quant_on is not 0: scale and zero_point are
// chosen for them, self is rounded to that grid, with a mask of what was not clamped; else a copy and all true.
// self float32; the written tensors float32, zero_point int32.
std::array<Tensor, 2> _fused_moving_avg_obs_fq_helper(const Tensor& self, const Tensor& observer_on,
                                                      const Tensor& fake_quant_on, Tensor& running_min,
                                                      Tensor& running_max, Tensor& scale, Tensor& zero_point,
                                                      double averaging_const, int64_t quant_min, int64_t quant_max,
                                                      int64_t ch_axis, bool per_row_fake_quant, bool symmetric_quant);
// The same on copies of what is written, which are results 2 to 5.
std::array<Tensor, 6> _fused_moving_avg_obs_fq_helper_functional(const Tensor& self, const Tensor& observer_on,
                                                                 const Tensor& fake_quant_on, const Tensor& running_min,
                                                                 const Tensor& running_max, const Tensor& scale,
                                                                 const Tensor& zero_point, double averaging_const,
                                                                 int64_t quant_min, int64_t quant_max, int64_t ch_axis,
                                                                 bool per_row_fake_quant, bool symmetric_quant);

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
