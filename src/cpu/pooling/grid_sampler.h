// Sampling at given coordinates, and its gradients. Match aten::grid_sampler_2d, grid_sampler_3d,
// _grid_sampler_2d_cpu_fallback and their gradients (torch 2.15, CPU).
//
// input [N, C, (D,) H, W], grid [N, ..., 2 or 3] of the same floating dtype, coordinates from -1 to 1, x first.
// interpolation_mode: 0 linear, 1 nearest, 2 cubic; padding_mode: 0 zeros, 1 border, 2 reflection. Any strides;
// row-major results. Half types are computed in float. kInvalidArgument; kUnsupported for dtypes.
#pragma once

#include <array>

#include "sconce/tensor.h"

namespace sconce::cpu {

Tensor grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                       bool align_corners);
// As above for float32, except for NaN coordinates: taps outside of the input do not count.
Tensor grid_sampler_2d_cpu_fallback(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                                    int64_t padding_mode, bool align_corners);
std::array<Tensor, 2> grid_sampler_2d_cpu_fallback_backward(const Tensor& grad_output, const Tensor& input,
                                                            const Tensor& grid, int64_t interpolation_mode,
                                                            int64_t padding_mode, bool align_corners);

}  // namespace sconce::cpu
