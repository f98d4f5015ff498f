#include <cmath>
#include <cstdint>

#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/element_sizes.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/pooling/pooling_kernels.h"
#include "src/cuda/pooling/pooling_lines.cuh"
#include "src/cuda/pooling/pooling_windows.h"

namespace sconce::cuda {
namespace {

__device__ float least(float) { return -INFINITY; }
__device__ double least(double) { return -INFINITY; }
__device__ int64_t least(int64_t) { return INT64_MIN; }

// Takes the first of equal maxima, and the last of NaNs.
template <class T, class I>
cudaError_t maxima(const PoolWalk& walk, const T* in, T* out, int64_t* indices, cudaStream_t stream) {
  const Planes<I> planes(walk);
  grid_loop(pooled_count(walk), stream, [=] __device__(int64_t i) {
    const Place<I> p = planes.template place<true>(i);
    const Line<I>&depth = planes.lines[0], &height = planes.lines[1], &width = planes.lines[2];
    const Span<I> d = depth.window(p.d), h = height.window(p.h), w = width.window(p.w);
    const T* plane = in + (p.n * planes.whole[0] + p.c * planes.whole[1]);
    Compute<T> best = least(Compute<T>());
    I at = (d.begin * height.input + h.begin) * width.input + w.begin;
    for (I id = d.begin; id < d.end; id += depth.dilation)
      for (I ih = h.begin; ih < h.end; ih += height.dilation)
        for (I iw = w.begin; iw < w.end; iw += width.dilation) {
          const Compute<T> v = widened(plane[id * planes.whole[2] + ih * planes.whole[3] + iw * planes.whole[4]]);
          if (v > best || is_nan(v)) {
            best = v;
            at = (id * height.input + ih) * width.input + iw;
          }
        }
    out[Planes<I>::offset(planes.pooled, p)] = narrowed<T>(best);
    indices[Planes<I>::offset(planes.indices, p)] = at;
  });
  return cudaGetLastError();
}
template <class T>
cudaError_t max_pool(const PoolWalk& walk, const void* from, void* to, int64_t* indices, cudaStream_t stream) {
  const T* in = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  return small_planes(walk) ? maxima<T, int32_t>(walk, in, out, indices, stream)
                            : maxima<T, int64_t>(walk, in, out, indices, stream);
}

template <class T, class I>
cudaError_t averages(const PoolWalk& walk, const T* in, T* out, bool include_padding, int64_t divisor,
                     cudaStream_t stream) {
  const Planes<I> planes(walk);
  grid_loop(pooled_count(walk), stream, [=] __device__(int64_t i) {
    using C = Compute<T>;
    const Place<I> p = planes.template place<true>(i);
    const Line<I>&depth = planes.lines[0], &height = planes.lines[1], &width = planes.lines[2];
    const Span<I> d = depth.window(p.d), h = height.window(p.h), w = width.window(p.w);
    const T* plane = in + (p.n * planes.whole[0] + p.c * planes.whole[1]);
    C sum = 0;
    for (I id = d.begin; id < d.end; ++id)
      for (I ih = h.begin; ih < h.end; ++ih)
        for (I iw = w.begin; iw < w.end; ++iw)
          sum += widened(plane[id * planes.whole[2] + ih * planes.whole[3] + iw * planes.whole[4]]);
    const bool empty = d.begin >= d.end || h.begin >= h.end || w.begin >= w.end;
    const C by = divisor ? static_cast<C>(divisor)
                         : static_cast<C>(depth.side(p.d, include_padding) * height.side(p.h, include_padding) *
                                          width.side(p.w, include_padding));
    out[Planes<I>::offset(planes.pooled, p)] = narrowed<T>(empty ? C(0) : sum / by);
  });
  return cudaGetLastError();
}
template <class T>
cudaError_t average_pool(const PoolWalk& walk, const void* from, void* to, bool include_padding, int64_t divisor,
                         cudaStream_t stream) {
  const T* in = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  return small_planes(walk) ? averages<T, int32_t>(walk, in, out, include_padding, divisor, stream)
                            : averages<T, int64_t>(walk, in, out, include_padding, divisor, stream);
}

template <class Word>
void unpool(const void* from, const int64_t* indices, void* to, int64_t planes, int64_t plane, int64_t out_plane,
            int* noted, int note, cudaStream_t stream) {
  const Word* in = static_cast<const Word*>(from);
  Word* out = static_cast<Word*>(to);
  const Divider by_plane(plane);
  grid_loop(planes * plane, stream, [=] __device__(int64_t i) {
    const int64_t index = indices[i];
    if (index < 0 || index >= out_plane)
      *noted = note;
    else
      out[by_plane.quotient(i) * out_plane + index] = in[i];
  });
}

// Computes half types in float32, as ATen's kernel does.
template <class C>
__device__ int64_t fractional_begin(const FractionalWalk& w, int axis, C sample, int64_t o) {
  const int64_t last = w.input[axis] - w.kernel[axis];
  if (o == w.output[axis] - 1) return last;
  const C alpha = static_cast<C>(last) / static_cast<C>(w.output[axis] - 1);
  const int64_t begin =
      static_cast<int64_t>((static_cast<C>(o) + sample) * alpha) - static_cast<int64_t>(sample * alpha);
  return begin < 0 ? 0 : begin > last ? last : begin;  // keeps samples outside [0, 1) in bounds
}

template <class T>
cudaError_t fractional(const FractionalWalk& walk, const void* in, const void* samples, void* out, int64_t* indices,
                       cudaStream_t stream) {
  const FractionalWalk w = walk;
  const T* from = static_cast<const T*>(in);
  const T* sample = static_cast<const T*>(samples);
  T* to = static_cast<T*>(out);
  const int64_t plane = w.input[0] * w.input[1] * w.input[2], out_plane = w.output[0] * w.output[1] * w.output[2];
  const Divider by_depth(w.output[0]), by_height(w.output[1]), by_width(w.output[2]);
  grid_loop(w.planes * out_plane, stream, [=] __device__(int64_t i) {
    using C = Compute<T>;
    int64_t number = i, place[3], begin[3];
    place[2] = by_width.take(number);
    place[1] = by_height.take(number);
    place[0] = by_depth.take(number);
    for (int axis = 2; axis >= 0; --axis) {
      // In two dimensions the first sample belongs to the width.
      const int at = w.dims == 3 ? axis : 2 - axis;
      begin[axis] = w.dims == 2 && axis == 0
                        ? 0
                        : fractional_begin<C>(w, axis, widened(sample[number * w.dims + at]), place[axis]);
    }
    const T* values = from + number * plane;
    int64_t best_at = (begin[0] * w.input[1] + begin[1]) * w.input[2] + begin[2];
    C best = -static_cast<C>(INFINITY);
    for (int64_t d = begin[0]; d < begin[0] + w.kernel[0]; ++d)
      for (int64_t h = begin[1]; h < begin[1] + w.kernel[1]; ++h)
        for (int64_t x = begin[2]; x < begin[2] + w.kernel[2]; ++x) {
          const int64_t at = (d * w.input[1] + h) * w.input[2] + x;
          const C value = widened(values[at]);
          if (value > best || is_nan(value)) {
            best = value;
            best_at = at;
          }
        }
    to[i] = narrowed<T>(best);
    indices[i] = best_at;
  });
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_max_pool(const PoolWalk& walk, int dtype, const void* in, void* out, int64_t* indices,
                            cudaStream_t stream) {
  if (max_windows(walk, dtype, in, out, indices, stream)) return cudaGetLastError();
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_REAL_CASES(max_pool, walk, in, out, indices, stream));
}

cudaError_t launch_average_pool(const PoolWalk& walk, int dtype, const void* in, void* out, bool include_padding,
                                int64_t divisor, cudaStream_t stream) {
  if (average_windows(walk, dtype, in, out, include_padding, divisor, stream)) return cudaGetLastError();
  SCONCE_RETURN_BY_DTYPE(
      dtype, SCONCE_FLOATING_CASES(average_pool, walk, in, out, include_padding, divisor, stream)
                 SCONCE_DTYPE_CASE(4, int64_t, average_pool, walk, in, out, include_padding, divisor, stream));
}

void launch_unpool(int itemsize, const void* in, const int64_t* indices, void* out, int64_t planes, int64_t plane,
                   int64_t out_plane, int* noted, int note, cudaStream_t stream) {
  by_word(itemsize,
          [&](auto word) { unpool<decltype(word)>(in, indices, out, planes, plane, out_plane, noted, note, stream); });
}

cudaError_t launch_fractional_pool(const FractionalWalk& walk, int dtype, const void* in, const void* samples,
                                   void* out, int64_t* indices, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_FLOATING_CASES(fractional, walk, in, samples, out, indices, stream));
}

}  // namespace sconce::cuda
