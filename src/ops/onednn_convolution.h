// Convolutions by oneDNN; when, onednn.h says.
#pragma once

#include "src/ops/convolution_operands.h"

namespace sconce::onednn {

// Thresholds, in multiplications: of float32 with all channels of a group together, of float32 depthwise or in groups,
// of bfloat16.
constexpr double kConvolutionFloat = 1 << 22, kConvolutionGrouped = 1 << 19, kConvolutionBFloat16 = 1 << 19;

// Writes all of `output`; false, and nothing is done, where our kernels are to be used.
bool convolve(const ConvolutionShape& shape, const ConvolutionOperands& operands, Tensor& output);

}  // namespace sconce::onednn
