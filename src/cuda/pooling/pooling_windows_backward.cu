#include "src/cuda/pooling/pooling_windows.cuh"
#include "src/cuda/pooling/pooling_windows.h"

namespace sconce::cuda {
namespace {

// A thread computes kStride by kStride inputs, which lie in the windows of at most kSide by kSide outputs.
template <int kSize, int kStride, int kPadding>
struct Squares {
  static constexpr int kFirst = (kPadding - kSize + 1) / kStride;  // division truncates, which rounds negatives up
  static constexpr int kSide = (kPadding + kStride - 1) / kStride - kFirst + 1;
  // Where the window of output y of these begins, relative to the square.
  __device__ static constexpr int begin(int y) { return (kFirst + y) * kStride - kPadding; }
  __device__ static constexpr bool covers(int y, int j) { return begin(y) <= j && j < begin(y) + kSize; }
};

template <class T, class W, int kSize, int kStride, bool kMaxima, bool kLast>
void slopes(const WindowPlanes& planes, const T* grad, const int64_t* indices, T* out, bool include_padding,
            int64_t given_divisor, cudaStream_t stream) {
  constexpr int kAtOnce = kLast ? kChannelsAtOnce : 1;
  const WindowPlanes p = planes;
  grid_loop(p.count, stream, [=] __device__(int64_t i) {
    const WindowSpot s = spot_of<kLast>(p, i);
    Pack<T, kAtOnce> given[W::kSide][W::kSide];
    int chosen[W::kSide][W::kSide][kAtOnce];
    bool there[W::kSide][W::kSide];
    const int row = s.h + W::kFirst, column = s.w + W::kFirst;
#pragma unroll
    for (int y = 0; y < W::kSide; ++y)
#pragma unroll
      for (int x = 0; x < W::kSide; ++x) {
        const WindowSpot o{s.n, s.c, row + y, column + x};
        there[y][x] = static_cast<unsigned>(o.h) < static_cast<unsigned>(p.out_height) &&
                      static_cast<unsigned>(o.w) < static_cast<unsigned>(p.out_width);
        if (there[y][x]) {
          given[y][x] = *reinterpret_cast<const Pack<T, kAtOnce>*>(grad + offset_of(p.pooled, o));
          if (kMaxima) {
            const auto places = *reinterpret_cast<const Pack<int64_t, kAtOnce>*>(indices + offset_of(p.indices, o));
#pragma unroll
            for (int k = 0; k < kAtOnce; ++k) chosen[y][x][k] = static_cast<int>(places.at[k]);
          }
        } else {
#pragma unroll
          for (int k = 0; k < kAtOnce; ++k) {
            given[y][x].at[k] = narrowed<T>(0.0f);
            chosen[y][x][k] = -1;
          }
        }
      }
    float sums[kStride][kStride][kAtOnce] = {};
    const int h = s.h * kStride, w = s.w * kStride;
#pragma unroll
    for (int y = 0; y < W::kSide; ++y)
#pragma unroll
      for (int x = 0; x < W::kSide; ++x) {
        float divisor = 1;  // for missing outputs too
        if (!kMaxima && there[y][x])
          divisor = window_divisor<kSize>(p, h + W::begin(y), w + W::begin(x), include_padding, given_divisor);
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) {
          const float value = kMaxima ? widened(given[y][x].at[k]) : widened(given[y][x].at[k]) / divisor;
#pragma unroll
          for (int j = 0; j < kStride; ++j)
#pragma unroll
            for (int l = 0; l < kStride; ++l) {
              if (!W::covers(y, j) || !W::covers(x, l)) continue;
              if (!kMaxima || chosen[y][x][k] == (h + j) * p.in_width + w + l) sums[j][l][k] += value;
            }
        }
      }
    T* to = out + s.n * p.whole[0] + s.c * p.whole[1] + h * p.whole[2] + w * (kLast ? p.whole[3] : 1);
#pragma unroll
    for (int j = 0; j < kStride; ++j) {
      if (h + j >= p.in_height) break;
      T* at = to + j * p.whole[2];
      if (!kLast && kStride == 2 && p.pairs) {
        *reinterpret_cast<Pack<T, 2>*>(at) = {{narrowed<T>(sums[j][0][0]), narrowed<T>(sums[j][kStride - 1][0])}};
        continue;
      }
#pragma unroll
      for (int l = 0; l < kStride; ++l) {
        if (w + l >= p.in_width) break;
        Pack<T, kAtOnce> result;
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) result.at[k] = narrowed<T>(sums[j][l][k]);
        *reinterpret_cast<Pack<T, kAtOnce>*>(at + l * (kLast ? p.whole[3] : 1)) = result;
      }
    }
  });
}

template <bool kMaxima, class T, int kSize, int kStride, int kPadding>
bool launch(const PoolWalk& walk, const void* grad, const int64_t* indices, void* out, bool include_padding,
            int64_t divisor, cudaStream_t stream) {
  using W = Squares<kSize, kStride, kPadding>;
  WindowPlanes p;
  if (!window_planes(walk, kStride, out, grad, indices, sizeof(T), p)) return false;
  const T* from = static_cast<const T*>(grad);
  T* to = static_cast<T*>(out);
  if (walk.channels_last)
    slopes<T, W, kSize, kStride, kMaxima, true>(p, from, indices, to, include_padding, divisor, stream);
  else
    slopes<T, W, kSize, kStride, kMaxima, false>(p, from, indices, to, include_padding, divisor, stream);
  return true;
}

template <class T, bool kMaxima>
bool slopes_as(const PoolWalk& walk, const void* grad, const int64_t* indices, void* out, bool include_padding,
               int64_t divisor, cudaStream_t stream) {
  const PoolLine& line = walk.lines[2];
  const auto is = [&](int kernel, int stride, int padding) {
    return line.kernel == kernel && line.stride == stride && line.padding == padding;
  };
  if (is(2, 2, 0)) return launch<kMaxima, T, 2, 2, 0>(walk, grad, indices, out, include_padding, divisor, stream);
  if (is(3, 2, 1)) return launch<kMaxima, T, 3, 2, 1>(walk, grad, indices, out, include_padding, divisor, stream);
  if (is(3, 1, 1)) return launch<kMaxima, T, 3, 1, 1>(walk, grad, indices, out, include_padding, divisor, stream);
  return false;
}
template <class T>
bool max_as(const PoolWalk& walk, const void* grad, const int64_t* indices, void* out, cudaStream_t stream) {
  return slopes_as<T, true>(walk, grad, indices, out, false, 0, stream);
}
template <class T>
bool average_as(const PoolWalk& walk, const void* grad, void* out, bool include_padding, int64_t divisor,
                cudaStream_t stream) {
  return slopes_as<T, false>(walk, grad, nullptr, out, include_padding, divisor, stream);
}

}  // namespace

bool max_window_slopes(const PoolWalk& walk, int dtype, const void* grad, const int64_t* indices, void* out,
                       cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE_OR(false, dtype, SCONCE_FLOAT_CASES(max_as, walk, grad, indices, out, stream));
}

bool average_window_slopes(const PoolWalk& walk, int dtype, const void* grad, void* out, bool include_padding,
                           int64_t divisor, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE_OR(false, dtype,
                            SCONCE_FLOAT_CASES(average_as, walk, grad, out, include_padding, divisor, stream));
}

}  // namespace sconce::cuda
