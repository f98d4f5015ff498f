// The inner loops of convolutions for CPUs with AVX-512 (F, BW, DQ, VL).
// GCC 12 takes its own intrinsics for uses of uninitialised variables (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

#include "sconce/float_types.h"
#include "src/cpu/convolution/direct/convolution_isa.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#define SCONCE_GEMM_AVX512
#include "src/cpu/vector/gemm_vectors.h"
// After gemm_vectors.h.
#include "src/cpu/convolution/direct/convolution_depthwise_tiles.h"
// After convolution_depthwise_tiles.h.
#include "src/cpu/vector/transpose_blocks.h"
// After transpose_blocks.h.
#include "src/cpu/convolution/direct/convolution_channels_tiles.h"
#include "src/cpu/convolution/direct/convolution_planes_tiles.h"

namespace sconce {

const ChannelTiles kChannelAvx512 = make_channel_tiles();
const PlaneTiles<float> kPlaneFloatAvx512 = {kPlaneRows, plane_run<float>};
const PlaneTiles<double> kPlaneDoubleAvx512 = {kPlaneRows, plane_run<double>};

}  // namespace sconce
#pragma GCC pop_options
