// Resampling of planes with a low-pass filter where they shrink. Matches aten::_upsample_bilinear2d_aa,
// _upsample_bicubic2d_aa, _upsample_lanczos2d_aa and the gradients (torch 2.15, CPU).
//
// self [N, C, H, W], any strides; uint8, whose weights are of 16 bits as there, or a floating dtype. Results
// channels-last where self is, else row-major, as the bicubic gradient always is. Scales, where given, tell the ratio
// of the sizes. kInvalidArgument.
#pragma once

#include "src/tensor/spatial/low_pass.h"

namespace sconce::cpu {

Tensor low_pass(LowPass filter, const Tensor& self, IntSpan output_size, bool align_corners, OptScale scales_h,
                OptScale scales_w);
Tensor low_pass_backward(LowPass filter, const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                         bool align_corners, OptScale scales_h, OptScale scales_w);

// The operators of one filter.
template <LowPass kFilter>
Tensor upsample_aa(const Tensor& self, IntSpan output_size, bool align_corners, OptScale scales_h, OptScale scales_w) {
  return low_pass(kFilter, self, output_size, align_corners, scales_h, scales_w);
}
template <LowPass kFilter>
Tensor upsample_aa_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size, bool align_corners,
                            OptScale scales_h, OptScale scales_w) {
  return low_pass_backward(kFilter, grad_output, output_size, input_size, align_corners, scales_h, scales_w);
}

}  // namespace sconce::cpu
