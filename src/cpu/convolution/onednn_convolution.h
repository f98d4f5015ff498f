// Convolutions by oneDNN; when, onednn.h says.
#pragma once

#include "src/cpu/convolution/direct/convolution_operands.h"

namespace sconce::onednn {

// Thresholds, in multiplications: of float32 with all channels of a group together, of float32 depthwise or in groups,
// of bfloat16, of bytes.
constexpr double kConvolutionFloat = 1 << 22, kConvolutionGrouped = 1 << 19, kConvolutionBFloat16 = 1 << 19;
constexpr double kConvolutionBytes = 1 << 17;

// Writes all of `output`; false, and nothing is done, where our kernels are to be used.
bool convolve(const ConvolutionShape& shape, const ConvolutionOperands& operands, Tensor& output);
// Of uint8 inputs less `zero_point` and int8 weights, into int32. Exact; no bias, no fusion.
bool convolve_bytes(const ConvolutionShape& shape, const ConvolutionOperands& operands, int32_t zero_point,
                    Tensor& output);

}  // namespace sconce::onednn
