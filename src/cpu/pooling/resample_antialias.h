// Resampling of planes with a low-pass filter where they shrink. Matches aten::_upsample_bilinear2d_aa,
// _upsample_bicubic2d_aa, _upsample_lanczos2d_aa and the gradients (torch 2.15, CPU).
//
// self [N, C, H, W], any strides; uint8, whose weights are of 16 bits as there, or a floating dtype. Results
// channels-last where self is, else row-major, as the bicubic gradient always is. Scales, where given, tell the ratio
// of the sizes. kInvalidArgument.
#pragma once

#include "src/tensor/spatial/low_pass.h"

namespace sconce::cpu {

LowPassKernel low_pass;
LowPassGradient low_pass_backward;

}  // namespace sconce::cpu
