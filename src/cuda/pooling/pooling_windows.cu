#include <cmath>

#include "src/cuda/pooling/pooling_windows.cuh"
#include "src/cuda/pooling/pooling_windows.h"

namespace sconce::cuda {
namespace {

// Reads the window, with `otherwise` beyond the edge. Issues all loads before the first use.
template <bool kLast, int kSize, int kAtOnce, class T>
__device__ void read_window(const WindowPlanes& p, const T* plane, int h, int w, T otherwise,
                            Pack<T, kAtOnce> (&window)[kSize][kSize]) {
  const int step = kLast ? p.whole[3] : 1;
  const T* row = plane + h * p.whole[2] + w * step;
#pragma unroll
  for (int y = 0; y < kSize; ++y, row += p.whole[2])
#pragma unroll
    for (int x = 0; x < kSize; ++x) {
      const bool inside = static_cast<unsigned>(h + y) < static_cast<unsigned>(p.in_height) &&
                          static_cast<unsigned>(w + x) < static_cast<unsigned>(p.in_width);
      if (inside) {
        window[y][x] = *reinterpret_cast<const Pack<T, kAtOnce>*>(row + x * step);
      } else {
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) window[y][x].at[k] = otherwise;
      }
    }
}

template <class T, int kSize, int kStride, bool kLast>
void maxima(const WindowPlanes& planes, const T* in, T* out, int64_t* indices, cudaStream_t stream) {
  constexpr int kAtOnce = kLast ? kChannelsAtOnce : 1;
  const WindowPlanes p = planes;
  grid_loop(p.count, stream, [=] __device__(int64_t i) {
    const WindowSpot s = spot_of<kLast>(p, i);
    const int h = s.h * kStride - p.padding, w = s.w * kStride - p.padding;
    Pack<T, kAtOnce> window[kSize][kSize];
    read_window<kLast, kSize, kAtOnce>(p, in + s.n * p.whole[0] + s.c * p.whole[1], h, w, narrowed<T>(-INFINITY),
                                       window);
    Pack<T, kAtOnce> result;
    Pack<int64_t, kAtOnce> places;
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      float best = -INFINITY;
      int chosen = -1;
#pragma unroll
      for (int y = 0; y < kSize; ++y)
#pragma unroll
        for (int x = 0; x < kSize; ++x) {
          const float v = widened(window[y][x].at[k]);
          if (v > best || is_nan(v)) {
            best = v;
            chosen = y * kSize + x;
          }
        }
      result.at[k] = narrowed<T>(best);
      // If no element exceeds -infinity, takes the first inside.
      const int y = chosen < 0 ? max(0, -h) : chosen / kSize, x = chosen < 0 ? max(0, -w) : chosen % kSize;
      places.at[k] = (h + y) * p.in_width + w + x;
    }
    *reinterpret_cast<Pack<T, kAtOnce>*>(out + offset_of(p.pooled, s)) = result;
    *reinterpret_cast<Pack<int64_t, kAtOnce>*>(indices + offset_of(p.indices, s)) = places;
  });
}

template <class T, int kSize, int kStride, bool kLast>
void averages(const WindowPlanes& planes, const T* in, T* out, bool include_padding, int64_t given_divisor,
              cudaStream_t stream) {
  constexpr int kAtOnce = kLast ? kChannelsAtOnce : 1;
  const WindowPlanes p = planes;
  grid_loop(p.count, stream, [=] __device__(int64_t i) {
    const WindowSpot s = spot_of<kLast>(p, i);
    const int h = s.h * kStride - p.padding, w = s.w * kStride - p.padding;
    Pack<T, kAtOnce> window[kSize][kSize];
    read_window<kLast, kSize, kAtOnce>(p, in + s.n * p.whole[0] + s.c * p.whole[1], h, w, narrowed<T>(0.0f), window);
    const float divisor = window_divisor<kSize>(p, h, w, include_padding, given_divisor);
    Pack<T, kAtOnce> result;
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      float sum = 0;
#pragma unroll
      for (int y = 0; y < kSize; ++y)
#pragma unroll
        for (int x = 0; x < kSize; ++x) sum += widened(window[y][x].at[k]);
      result.at[k] = narrowed<T>(sum / divisor);
    }
    *reinterpret_cast<Pack<T, kAtOnce>*>(out + offset_of(p.pooled, s)) = result;
  });
}

template <class T, int kSize, int kStride>
void maxima_in(bool last, const WindowPlanes& p, const void* in, void* out, int64_t* indices, cudaStream_t stream) {
  const T* from = static_cast<const T*>(in);
  T* to = static_cast<T*>(out);
  if (last)
    maxima<T, kSize, kStride, true>(p, from, to, indices, stream);
  else
    maxima<T, kSize, kStride, false>(p, from, to, indices, stream);
}
template <class T, int kSize, int kStride>
void averages_in(bool last, const WindowPlanes& p, const void* in, void* out, bool include_padding, int64_t divisor,
                 cudaStream_t stream) {
  const T* from = static_cast<const T*>(in);
  T* to = static_cast<T*>(out);
  if (last)
    averages<T, kSize, kStride, true>(p, from, to, include_padding, divisor, stream);
  else
    averages<T, kSize, kStride, false>(p, from, to, include_padding, divisor, stream);
}

template <class T>
bool maxima_as(const PoolWalk& walk, const void* in, void* out, int64_t* indices, cudaStream_t stream) {
  const PoolLine& line = walk.lines[2];
  WindowPlanes p;
  if (!window_planes(walk, 0, in, out, indices, sizeof(T), p)) return false;
  if (line.kernel == 2 && line.stride == 2)
    maxima_in<T, 2, 2>(walk.channels_last, p, in, out, indices, stream);
  else if (line.kernel == 3 && line.stride == 2)
    maxima_in<T, 3, 2>(walk.channels_last, p, in, out, indices, stream);
  else if (line.kernel == 3 && line.stride == 1)
    maxima_in<T, 3, 1>(walk.channels_last, p, in, out, indices, stream);
  else
    return false;
  return true;
}

template <class T>
bool averages_as(const PoolWalk& walk, const void* in, void* out, bool include_padding, int64_t divisor,
                 cudaStream_t stream) {
  const PoolLine& line = walk.lines[2];
  WindowPlanes p;
  if (!window_planes(walk, 0, in, out, nullptr, sizeof(T), p)) return false;
  if (line.kernel == 2 && line.stride == 2)
    averages_in<T, 2, 2>(walk.channels_last, p, in, out, include_padding, divisor, stream);
  else if (line.kernel == 3 && line.stride == 2)
    averages_in<T, 3, 2>(walk.channels_last, p, in, out, include_padding, divisor, stream);
  else if (line.kernel == 3 && line.stride == 1)
    averages_in<T, 3, 1>(walk.channels_last, p, in, out, include_padding, divisor, stream);
  else
    return false;
  return true;
}

}  // namespace

bool max_windows(const PoolWalk& walk, int dtype, const void* in, void* out, int64_t* indices, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE_OR(false, dtype, SCONCE_FLOAT_CASES(maxima_as, walk, in, out, indices, stream));
}

bool average_windows(const PoolWalk& walk, int dtype, const void* in, void* out, bool include_padding, int64_t divisor,
                     cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE_OR(false, dtype,
                            SCONCE_FLOAT_CASES(averages_as, walk, in, out, include_padding, divisor, stream));
}

}  // namespace sconce::cuda
