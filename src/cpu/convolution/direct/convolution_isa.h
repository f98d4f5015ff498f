// One set of convolution's inner loops per instruction set.
#pragma once

#include "src/cpu/convolution/direct/convolution_bytes.h"
#include "src/cpu/convolution/direct/convolution_channels.h"
#include "src/cpu/convolution/direct/convolution_depthwise.h"
#include "src/cpu/convolution/direct/convolution_planes.h"

namespace sconce {

extern const ByteTiles kByteVnni;
extern const ChannelTiles kChannelAvx512;
extern const PlaneTiles<float> kPlaneFloatAvx512;
extern const PlaneTiles<double> kPlaneDoubleAvx512;

// Whether AVX-512 is used if the CPU has it. Do not call during a convolution.
void testing_convolution_avx512(bool allowed) noexcept;
// As above, for the instructions for bytes.
void testing_convolution_vnni(bool allowed) noexcept;

}  // namespace sconce
