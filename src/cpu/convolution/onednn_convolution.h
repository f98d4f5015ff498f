// Convolutions by oneDNN; when, onednn.h says.
#pragma once

#include "src/cpu/convolution/direct/convolution_operands.h"

namespace sconce::onednn {

// Thresholds, in multiplications: of float32 with all channels of a group together, of float32 depthwise or in groups,
// of bfloat16.
constexpr double kConvolutionFloat = 1 << 22, kConvolutionGrouped = 1 << 18, kConvolutionBFloat16 = 1 << 19;
// Row-major float32 images go to the library through copies if input and result have at least this number of channels,
// and at most this number of pixels, because larger copies leave the cache. Time of the library / time of our kernels,
// 3 x 3, one thread (Zen 4): 512 channels of 6 x 6 0.58, 128 of 24 x 24 0.84, 64 of 48 x 48 0.88, 48 of 48 x 48 0.99,
// 256 of 56 x 56 0.95; 24 of 96 x 96 1.50, 32 of 96 x 96 1.04, 128 of 64 x 64 1.07. 1 x 1: 1.07 to 1.34.
constexpr int64_t kCopiedChannels = 32, kCopiedPixels = 3584;
// Weights that are not constants are put in order at each call: for the library once for all threads, for our kernels
// by each thread for its own channels. The library is used for such float32 convolutions from this number of pixels
// on. Time of the library / time of our kernels, one thread and two (Zen 5): 3 x 3, 512 channels, 9 pixels 1.25 and
// 1.26, 49 pixels 0.84 and 0.89, 100 pixels 0.82 and 0.96; 256 channels, 16 pixels 0.94 and 0.98; 1 x 1, 2,048 to 512
// channels, 49 pixels 0.94 and 1.18.
constexpr int64_t kOrderedPixels = 32, kOrderedPixelsAlone = 128;

// Writes all of `output`; false, without any effect, if our kernels should be used.
bool convolve(const ConvolutionShape& shape, const ConvolutionOperands& operands, Tensor& output);

}  // namespace sconce::onednn
