// Resampling of planes with a low-pass filter where they shrink. Matches aten::_upsample_bilinear2d_aa,
// _upsample_bicubic2d_aa, _upsample_lanczos2d_aa and the gradients (torch 2.15, CPU).
//
// self [N, C, H, W], any strides; uint8, with weights of 16 bits as in ATen, or a floating dtype. Results are
// channels-last if self is, else row-major; the bicubic gradient is always row-major. Scales, if given, are the ratio
// of the sizes. kInvalidArgument.
#pragma once

#include "src/tensor/spatial/low_pass.h"

namespace sconce::cpu {

LowPassKernel low_pass;
LowPassGradient low_pass_backward;

}  // namespace sconce::cpu
