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

// Where windows begin along an axis. Computes half types in float32, as ATen's kernel does.
template <class C, class I>
struct FractionalLine {
  FractionalLine() = default;
  FractionalLine(const FractionalWalk& w, int axis)
      : input(static_cast<I>(w.input[axis])),
        kernel(static_cast<I>(w.kernel[axis])),
        last(static_cast<I>(w.input[axis] - w.kernel[axis])),
        end(static_cast<I>(w.output[axis] - 1)),
        alpha(end > 0 ? static_cast<C>(last) / static_cast<C>(end) : C(0)),
        outputs(w.output[axis]) {}
  __device__ I begin(C sample, I o) const {
    if (o == end) return last;
    const I begin = static_cast<I>((static_cast<C>(o) + sample) * alpha) - static_cast<I>(sample * alpha);
    return begin < 0 ? 0 : begin > last ? last : begin;  // keeps samples outside [0, 1) in bounds
  }
  I input, kernel, last, end;
  C alpha;
  Divider outputs;
};

template <class T, class I, int kDims>
cudaError_t fractional_as(const FractionalWalk& w, const T* from, const T* sample, T* to, int64_t* indices,
                          cudaStream_t stream) {
  using C = Compute<T>;
  const FractionalLine<C, I> depth(w, 0), height(w, 1), width(w, 2);
  const I plane = static_cast<I>(w.input[0] * w.input[1] * w.input[2]);
  grid_loop(w.planes * w.output[0] * w.output[1] * w.output[2], stream, [=] __device__(int64_t i) {
    auto number = static_cast<I>(i);
    const I x = take(width.outputs, number), y = take(height.outputs, number);
    const I z = kDims == 3 ? take(depth.outputs, number) : 0;
    // In two dimensions the first sample belongs to the width.
    const T* const its = sample + number * kDims;
    const I first_x = width.begin(widened(its[kDims == 3 ? 2 : 0]), x), first_y = height.begin(widened(its[1]), y),
            first_z = kDims == 3 ? depth.begin(widened(its[0]), z) : 0;
    const T* const values = from + number * plane;
    const I first = (first_z * height.input + first_y) * width.input + first_x;
    I best_at = first;
    C best = -static_cast<C>(INFINITY);
    for (I d = 0; d < (kDims == 3 ? depth.kernel : 1); ++d)
      for (I h = 0; h < height.kernel; ++h) {
        const I row = first + (d * height.input + h) * width.input;
        for (I at = row; at < row + width.kernel; ++at) {
          const C value = widened(values[at]);
          if (value > best || is_nan(value)) {
            best = value;
            best_at = at;
          }
        }
      }
    to[i] = narrowed<T>(best);
    indices[i] = best_at;
  });
  return cudaGetLastError();
}

template <class T>
cudaError_t fractional(const FractionalWalk& w, const void* in, const void* samples, void* out, int64_t* indices,
                       cudaStream_t stream) {
  const T *from = static_cast<const T*>(in), *sample = static_cast<const T*>(samples);
  T* to = static_cast<T*>(out);
  // Numbers below 2^31, computed in double, which does not overflow.
  const auto product = [&](const int64_t(&sizes)[3]) {
    return static_cast<double>(w.planes) * static_cast<double>(sizes[0]) * static_cast<double>(sizes[1]) *
           static_cast<double>(sizes[2]);
  };
  const bool small = product(w.input) < INT32_MAX && product(w.output) < INT32_MAX &&
                     static_cast<double>(w.planes) * w.dims < INT32_MAX;
  if (w.dims == 2)
    return small ? fractional_as<T, int32_t, 2>(w, from, sample, to, indices, stream)
                 : fractional_as<T, int64_t, 2>(w, from, sample, to, indices, stream);
  return small ? fractional_as<T, int32_t, 3>(w, from, sample, to, indices, stream)
               : fractional_as<T, int64_t, 3>(w, from, sample, to, indices, stream);
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
