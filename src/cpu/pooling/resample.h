// Resizing without a low-pass filter. Matches aten::upsample_nearest{1,2,3}d, _upsample_nearest_exact{1,2,3}d,
// upsample_linear1d, upsample_bilinear2d, upsample_bicubic2d and upsample_trilinear3d (torch 2.15, CPU).
//
// self [N, C, ...], any strides, floating; uint8 too (weights of 16 bits, as in ATen), except for linear1d and
// trilinear3d. Results are channels-last if self is, else row-major. Scales: output over input; 0 or none: from sizes.
// kInvalidArgument for sizes; kUnsupported for dtypes.
#pragma once

#include "sconce/tensor.h"
#include "src/tensor/spatial/resample_taps.h"

namespace sconce::cpu {

Tensor upsample_nearest1d(const Tensor& self, IntSpan output_size, OptScale scales);
Tensor upsample_nearest2d(const Tensor& self, IntSpan output_size, OptScale scales_h, OptScale scales_w);
Tensor upsample_nearest3d(const Tensor& self, IntSpan output_size, OptScale scales_d, OptScale scales_h,
                          OptScale scales_w);
Tensor _upsample_nearest_exact1d(const Tensor& self, IntSpan output_size, OptScale scales);
Tensor _upsample_nearest_exact2d(const Tensor& self, IntSpan output_size, OptScale scales_h, OptScale scales_w);
Tensor _upsample_nearest_exact3d(const Tensor& self, IntSpan output_size, OptScale scales_d, OptScale scales_h,
                                 OptScale scales_w);
Tensor upsample_linear1d(const Tensor& self, IntSpan output_size, bool align_corners, OptScale scales);
Tensor upsample_bilinear2d(const Tensor& self, IntSpan output_size, bool align_corners, OptScale scales_h,
                           OptScale scales_w);
Tensor upsample_bicubic2d(const Tensor& self, IntSpan output_size, bool align_corners, OptScale scales_h,
                          OptScale scales_w);
Tensor upsample_trilinear3d(const Tensor& self, IntSpan output_size, bool align_corners, OptScale scales_d,
                            OptScale scales_h, OptScale scales_w);

}  // namespace sconce::cpu
