#include "src/cuda/pooling/pooling_lines.cuh"
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

struct Volume {
  int in[3], out[3];
  int whole[5], pooled[5], indices[5];
  Divider cubes[3], channels;
  bool pairs;  // neighbours in rows are aligned
};
// In three dimensions: a thread computes a cube of inputs of a row-major tensor, which lie in the windows of at most
// kSide outputs in each direction. All of these are read before any is compared.
template <class T, class W, int kStride>
void cube_slopes(const PoolWalk& walk, const T* grad, const int64_t* indices, T* out, cudaStream_t stream) {
  constexpr int kSide = W::kSide;
  Volume v;
  int64_t count = walk.batch * walk.channels;
  for (int d = 0; d < 3; ++d) {
    v.in[d] = static_cast<int>(walk.lines[d].input);
    v.out[d] = static_cast<int>(walk.lines[d].output);
    const int64_t cubes = (walk.lines[d].input + kStride - 1) / kStride;
    v.cubes[d] = Divider(cubes);
    count *= cubes;
  }
  for (int d = 0; d < 5; ++d) {
    v.whole[d] = static_cast<int>(walk.whole[d]);
    v.pooled[d] = static_cast<int>(walk.pooled[d]);
    v.indices[d] = static_cast<int>(walk.indices[d]);
  }
  v.channels = Divider(walk.channels);
  v.pairs = kStride == 2 && walk.lines[2].input % 2 == 0 && reinterpret_cast<uintptr_t>(out) % (2 * sizeof(T)) == 0;
  grid_loop(count, stream, [=] __device__(int64_t number) {
    auto i = static_cast<uint32_t>(number);
    const int x = static_cast<int>(v.cubes[2].take_small(i)), y = static_cast<int>(v.cubes[1].take_small(i)),
              z = static_cast<int>(v.cubes[0].take_small(i)), c = static_cast<int>(v.channels.take_small(i)),
              n = static_cast<int>(i);
    const T* const grads = grad + n * v.pooled[0] + c * v.pooled[1];
    const int64_t* const places = indices + n * v.indices[0] + c * v.indices[1];
    float given[kSide][kSide][kSide];
    int chosen[kSide][kSide][kSide];
#pragma unroll
    for (int a = 0; a < kSide; ++a)
#pragma unroll
      for (int b = 0; b < kSide; ++b)
#pragma unroll
        for (int e = 0; e < kSide; ++e) {
          const int d = z + W::kFirst + a, h = y + W::kFirst + b, w = x + W::kFirst + e;
          const bool there = static_cast<unsigned>(d) < static_cast<unsigned>(v.out[0]) &&
                             static_cast<unsigned>(h) < static_cast<unsigned>(v.out[1]) &&
                             static_cast<unsigned>(w) < static_cast<unsigned>(v.out[2]);
          given[a][b][e] = 0;
          chosen[a][b][e] = -1;
          if (!there) continue;
          given[a][b][e] = widened(grads[d * v.pooled[2] + h * v.pooled[3] + w * v.pooled[4]]);
          chosen[a][b][e] = static_cast<int>(places[d * v.indices[2] + h * v.indices[3] + w * v.indices[4]]);
        }
    float sums[kStride][kStride][kStride] = {};
    const int first_d = z * kStride, first_h = y * kStride, first_w = x * kStride;
#pragma unroll
    for (int a = 0; a < kSide; ++a)
#pragma unroll
      for (int b = 0; b < kSide; ++b)
#pragma unroll
        for (int e = 0; e < kSide; ++e)
#pragma unroll
          for (int j = 0; j < kStride; ++j)
#pragma unroll
            for (int k = 0; k < kStride; ++k)
#pragma unroll
              for (int l = 0; l < kStride; ++l) {
                if (!W::covers(a, j) || !W::covers(b, k) || !W::covers(e, l)) continue;
                const int self = ((first_d + j) * v.in[1] + first_h + k) * v.in[2] + first_w + l;
                if (chosen[a][b][e] == self) sums[j][k][l] += given[a][b][e];
              }
#pragma unroll
    for (int j = 0; j < kStride; ++j)
#pragma unroll
      for (int k = 0; k < kStride; ++k) {
        if (first_d + j >= v.in[0] || first_h + k >= v.in[1]) continue;
        T* const to =
            out + n * v.whole[0] + c * v.whole[1] + (first_d + j) * v.whole[2] + (first_h + k) * v.whole[3] + first_w;
        if (v.pairs) {
          *reinterpret_cast<Pack<T, 2>*>(to) = {{narrowed<T>(sums[j][k][0]), narrowed<T>(sums[j][k][kStride - 1])}};
          continue;
        }
#pragma unroll
        for (int l = 0; l < kStride; ++l)
          if (first_w + l < v.in[2]) to[l] = narrowed<T>(sums[j][k][l]);
      }
  });
}
// False if this kernel does not apply.
template <class T>
bool cube_maxima(const PoolWalk& walk, const void* grad, const int64_t* indices, void* out, cudaStream_t stream) {
  if (walk.channels_last || walk.whole[4] != 1 || walk.stray_indices || !small_planes(walk)) return false;
  for (const PoolLine& l : walk.lines)
    if (l.adaptive || l.kernel != 3 || l.stride != 2 || l.padding != 1 || l.dilation != 1) return false;
  cube_slopes<T, Squares<3, 2, 1>, 2>(walk, static_cast<const T*>(grad), indices, static_cast<T*>(out), stream);
  return true;
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
  return slopes_as<T, true>(walk, grad, indices, out, false, 0, stream) ||
         cube_maxima<T>(walk, grad, indices, out, stream);
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
