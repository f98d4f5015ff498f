// 2d windows whose size and stride the compiler knows, with 32-bit offsets. Most pooling is of this kind.
#pragma once

#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/division.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/pooling/pooling_kernels.h"

namespace sconce::cuda {

constexpr int kChannelsAtOnce = 4;

// Planes in visiting order: width first, or packs of channels.
struct WindowPlanes {
  int in_height, in_width, out_height, out_width, padding;
  int whole[4], pooled[4], indices[4];  // strides by batch, channel, height, width
  Divider channels, height, width;      // sizes in visiting order
  int64_t count;
  bool pairs;  // pairs of neighbours in rows of `whole` are aligned
};

struct WindowSpot {
  int n, c, h, w;
};
template <bool kLast>
__device__ WindowSpot spot_of(const WindowPlanes& p, int64_t number) {
  auto i = static_cast<uint32_t>(number);
  WindowSpot s;
  if (kLast) s.c = static_cast<int>(p.channels.take_small(i)) * kChannelsAtOnce;
  s.w = static_cast<int>(p.width.take_small(i));
  s.h = static_cast<int>(p.height.take_small(i));
  if (!kLast) s.c = static_cast<int>(p.channels.take_small(i));
  s.n = static_cast<int>(i);
  return s;
}
__device__ inline int offset_of(const int (&strides)[4], const WindowSpot& s) {
  return s.n * strides[0] + s.c * strides[1] + s.h * strides[2] + s.w * strides[3];
}

// The divisor for the window that begins at h, w.
template <int kSize>
__device__ float window_divisor(const WindowPlanes& p, int h, int w, bool include_padding, int64_t given) {
  if (given) return static_cast<float>(given);
  const auto side = [&](int begin, int input) {
    return include_padding ? min(begin + kSize, input + p.padding) - begin : min(begin + kSize, input) - max(begin, 0);
  };
  return static_cast<float>(int64_t{side(h, p.in_height)} * side(w, p.in_width));
}

// False if these kernels do not apply. square: the side of the square of inputs per thread; 0: one output per thread.
// Averages have null indices.
inline bool window_planes(const PoolWalk& walk, int square, const void* whole, const void* pooled, const void* indices,
                          int itemsize, WindowPlanes& p) {
  const PoolLine &depth = walk.lines[0], &h = walk.lines[1], &w = walk.lines[2];
  const auto same = [](int64_t a, int64_t b, int64_t c) { return a == b && b == c; };
  if (depth.input != 1 || depth.output != 1 || depth.adaptive || h.adaptive || w.adaptive || depth.kernel != 1 ||
      depth.padding != 0 || !same(h.dilation, w.dilation, 1) || h.kernel != w.kernel || h.stride != w.stride ||
      h.padding != w.padding)
    return false;
  const int64_t sizes[2][4] = {{walk.batch, walk.channels, h.input, w.input},
                               {walk.batch, walk.channels, h.output, w.output}};
  int64_t strides[3][4];
  const int64_t(*given[3])[5] = {&walk.whole, &walk.pooled, &walk.indices};
  int* const taken[3] = {p.whole, p.pooled, p.indices};
  for (int t = 0; t < 3; ++t) {
    int64_t reach = 1;
    for (int d = 0; d < 4; ++d) {
      strides[t][d] = t == 2 && !indices ? 0 : (*given[t])[d < 2 ? d : d + 1];
      reach += (sizes[t > 0][d] - 1) * strides[t][d];
      taken[t][d] = static_cast<int>(strides[t][d]);
    }
    // Offsets beyond the edge are computed too, though never read.
    if (reach + 4 * (strides[t][2] + strides[t][3]) > INT32_MAX) return false;
  }
  const auto aligned = [](const void* data, int64_t bytes) { return reinterpret_cast<uintptr_t>(data) % bytes == 0; };
  if (!walk.channels_last && strides[0][3] != 1) return false;
  if (walk.channels_last) {
    if (walk.channels % kChannelsAtOnce || !aligned(whole, itemsize * kChannelsAtOnce) ||
        !aligned(pooled, itemsize * kChannelsAtOnce) || (indices && !aligned(indices, 8 * kChannelsAtOnce)))
      return false;
    for (int t = 0; t < (indices ? 3 : 2); ++t)
      if (strides[t][1] != 1 || strides[t][0] % kChannelsAtOnce || strides[t][2] % kChannelsAtOnce ||
          strides[t][3] % kChannelsAtOnce)
        return false;
  }
  p.in_height = static_cast<int>(h.input);
  p.in_width = static_cast<int>(w.input);
  p.out_height = static_cast<int>(h.output);
  p.out_width = static_cast<int>(w.output);
  p.padding = static_cast<int>(h.padding);
  const int64_t rows = square ? (h.input + square - 1) / square : h.output,
                columns = square ? (w.input + square - 1) / square : w.output,
                channels = walk.channels_last ? walk.channels / kChannelsAtOnce : walk.channels;
  p.channels = Divider(channels);
  p.height = Divider(rows);
  p.width = Divider(columns);
  p.count = walk.batch * channels * rows * columns;
  p.pairs = strides[0][0] % 2 == 0 && strides[0][1] % 2 == 0 && strides[0][2] % 2 == 0 && w.input % 2 == 0 &&
            aligned(whole, itemsize * 2);
  return p.count <= INT32_MAX;
}

}  // namespace sconce::cuda
