// The inner loops of convolutions for any CPU that Sconce runs on.
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

#include "sconce/float_types.h"
#include "src/cpu/convolution/direct/convolution_isa.h"
#include "src/cpu/vector/gemm_vectors.h"
#include "src/device/cpu_isa.h"
// After gemm_vectors.h.
#include "src/cpu/convolution/direct/convolution_depthwise_tiles.h"
// After convolution_depthwise_tiles.h.
#include "src/cpu/vector/transpose_blocks.h"
// After transpose_blocks.h.
#include "src/cpu/convolution/direct/convolution_channels_tiles.h"
#include "src/cpu/convolution/direct/convolution_planes_tiles.h"

namespace sconce {
namespace {

bool allowed_avx512 = has_avx512();

template <class T>
constexpr PlaneTiles<T> kPlanes = {kPlaneRows, plane_run<T>};
constexpr ChannelTiles kChannels = make_channel_tiles();

}  // namespace

void testing_convolution_avx512(bool allowed) noexcept { allowed_avx512 = allowed && has_avx512(); }

const ChannelTiles& channel_tiles(int64_t channels) noexcept {
  // Narrow vectors where wide ones would have more idle lanes than their width is worth.
  const bool narrow = channels <= 8 || (channels > 16 && channels <= 24);
  return allowed_avx512 && !narrow ? kChannelAvx512 : kChannels;
}

template <class T>
const PlaneTiles<T>& plane_tiles() noexcept {
  return kPlanes<T>;
}
template <>
const PlaneTiles<float>& plane_tiles<float>() noexcept {
  return allowed_avx512 ? kPlaneFloatAvx512 : kPlanes<float>;
}
template <>
const PlaneTiles<double>& plane_tiles<double>() noexcept {
  return allowed_avx512 ? kPlaneDoubleAvx512 : kPlanes<double>;
}
template const PlaneTiles<uint8_t>& plane_tiles<uint8_t>() noexcept;
template const PlaneTiles<int8_t>& plane_tiles<int8_t>() noexcept;
template const PlaneTiles<int16_t>& plane_tiles<int16_t>() noexcept;
template const PlaneTiles<int32_t>& plane_tiles<int32_t>() noexcept;
template const PlaneTiles<int64_t>& plane_tiles<int64_t>() noexcept;

}  // namespace sconce
