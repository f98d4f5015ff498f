#include <cmath>
#include <cstdint>

#include "src/cuda/device_types.cuh"
#include "src/cuda/division.cuh"
#include "src/cuda/grid_loop.cuh"
#include "src/cuda/pooling_kernels.h"
#include "src/cuda/pooling_windows.h"

namespace sconce::cuda {
namespace {

struct Span {
  int64_t begin, end;
};

struct LineSteps {
  Divider input, output, stride;
};

// What the window of output o covers, in steps of dilation.
__device__ Span window(const PoolLine& l, const LineSteps& by, int64_t o) {
  if (l.adaptive) return {by.output.quotient(o * l.input), by.output.quotient((o + 1) * l.input + l.output - 1)};
  const int64_t begin = o * l.stride - l.padding, end = begin + (l.kernel - 1) * l.dilation + 1;
  return {begin < 0 ? begin + (-begin + l.dilation - 1) / l.dilation * l.dilation : begin, min(end, l.input)};
}
// Outputs whose windows may cover input i.
__device__ Span covering(const PoolLine& l, const LineSteps& by, int64_t i) {
  if (l.adaptive) return {by.input.quotient(i * l.output), by.input.quotient((i + 1) * l.output + l.input - 1)};
  const int64_t at = i + l.padding, reach = (l.kernel - 1) * l.dilation + 1;
  return {at < reach ? 0 : by.stride.quotient(at - reach) + 1, min(by.stride.quotient(at) + 1, l.output)};
}
__device__ int64_t padded_size(const PoolLine& l, int64_t o) {
  const int64_t begin = o * l.stride - l.padding;
  return min(begin + l.kernel, l.input + l.padding) - begin;
}

// Batch, channel, depth, height, width of the i-th element of sizes as they are visited.
struct Place {
  int64_t n, c, d, h, w;
};
struct Visit {
  Visit(const PoolWalk& walk, bool pooled)
      : channels(walk.channels),
        depth(pooled ? walk.lines[0].output : walk.lines[0].input),
        height(pooled ? walk.lines[1].output : walk.lines[1].input),
        width(pooled ? walk.lines[2].output : walk.lines[2].input),
        channels_last(walk.channels_last) {
    for (int i = 0; i < 3; ++i)
      steps[i] = {Divider(walk.lines[i].input), Divider(walk.lines[i].output), Divider(walk.lines[i].stride)};
  }
  __device__ Place place(int64_t i) const {
    Place p;
    if (channels_last) p.c = channels.take(i);
    p.w = width.take(i);
    p.h = height.take(i);
    p.d = depth.take(i);
    if (!channels_last) p.c = channels.take(i);
    p.n = i;
    return p;
  }

  Divider channels, depth, height, width;
  LineSteps steps[3];
  bool channels_last;
};
__device__ int64_t offset(const int64_t (&strides)[5], const Place& p) {
  return p.n * strides[0] + p.c * strides[1] + p.d * strides[2] + p.h * strides[3] + p.w * strides[4];
}

__device__ float least(float) { return -INFINITY; }
__device__ double least(double) { return -INFINITY; }
__device__ int64_t least(int64_t) { return INT64_MIN; }

int64_t pooled_count(const PoolWalk& w) {
  return w.batch * w.channels * w.lines[0].output * w.lines[1].output * w.lines[2].output;
}
int64_t whole_count(const PoolWalk& w) {
  return w.batch * w.channels * w.lines[0].input * w.lines[1].input * w.lines[2].input;
}
// Of equal maxima the first, of NaNs the last.
template <class T>
cudaError_t max_pool(const PoolWalk& walk, const void* from, void* to, int64_t* indices, cudaStream_t stream) {
  const T* in = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  const Visit visit(walk, true);
  grid_loop(pooled_count(walk), stream, [=] __device__(int64_t i) {
    const Place p = visit.place(i);
    const PoolLine &depth = walk.lines[0], &height = walk.lines[1], &width = walk.lines[2];
    const Span d = window(depth, visit.steps[0], p.d), h = window(height, visit.steps[1], p.h),
               w = window(width, visit.steps[2], p.w);
    const T* plane = in + p.n * walk.whole[0] + p.c * walk.whole[1];
    Compute<T> best = least(Compute<T>());
    int64_t at = (d.begin * height.input + h.begin) * width.input + w.begin;
    for (int64_t id = d.begin; id < d.end; id += depth.dilation)
      for (int64_t ih = h.begin; ih < h.end; ih += height.dilation)
        for (int64_t iw = w.begin; iw < w.end; iw += width.dilation) {
          const Compute<T> v = widened(plane[id * walk.whole[2] + ih * walk.whole[3] + iw * walk.whole[4]]);
          if (v > best || is_nan(v)) {
            best = v;
            at = (id * height.input + ih) * width.input + iw;
          }
        }
    out[offset(walk.pooled, p)] = narrowed<T>(best);
    indices[offset(walk.indices, p)] = at;
  });
  return cudaGetLastError();
}

__device__ int64_t divisor_of(const PoolWalk& walk, const Place& p, const Span& d, const Span& h, const Span& w,
                              bool include_padding, int64_t divisor) {
  if (divisor) return divisor;
  if (include_padding)
    return padded_size(walk.lines[0], p.d) * padded_size(walk.lines[1], p.h) * padded_size(walk.lines[2], p.w);
  return (d.end - d.begin) * (h.end - h.begin) * (w.end - w.begin);
}

template <class T>
cudaError_t average_pool(const PoolWalk& walk, const void* from, void* to, bool include_padding, int64_t divisor,
                         cudaStream_t stream) {
  const T* in = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  const Visit visit(walk, true);
  grid_loop(pooled_count(walk), stream, [=] __device__(int64_t i) {
    const Place p = visit.place(i);
    const Span d = window(walk.lines[0], visit.steps[0], p.d), h = window(walk.lines[1], visit.steps[1], p.h),
               w = window(walk.lines[2], visit.steps[2], p.w);
    const T* plane = in + p.n * walk.whole[0] + p.c * walk.whole[1];
    Compute<T> sum = 0;
    for (int64_t id = d.begin; id < d.end; ++id)
      for (int64_t ih = h.begin; ih < h.end; ++ih)
        for (int64_t iw = w.begin; iw < w.end; ++iw)
          sum += widened(plane[id * walk.whole[2] + ih * walk.whole[3] + iw * walk.whole[4]]);
    const bool empty = d.begin >= d.end || h.begin >= h.end || w.begin >= w.end;
    const auto by = static_cast<Compute<T>>(divisor_of(walk, p, d, h, w, include_padding, divisor));
    out[offset(walk.pooled, p)] = narrowed<T>(empty ? Compute<T>(0) : sum / by);
  });
  return cudaGetLastError();
}

template <class T>
cudaError_t max_backward(const PoolWalk& walk, const void* from, const int64_t* indices, void* to,
                         cudaStream_t stream) {
  const T* grad = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  const Visit visit(walk, false);
  grid_loop(whole_count(walk), stream, [=] __device__(int64_t i) {
    const Place p = visit.place(i);
    const Span d = covering(walk.lines[0], visit.steps[0], p.d), h = covering(walk.lines[1], visit.steps[1], p.h),
               w = covering(walk.lines[2], visit.steps[2], p.w);
    const int64_t self = (p.d * walk.lines[1].input + p.h) * walk.lines[2].input + p.w;
    const T* given = grad + p.n * walk.pooled[0] + p.c * walk.pooled[1];
    const int64_t* chosen = indices + p.n * walk.indices[0] + p.c * walk.indices[1];
    Compute<T> sum = 0;
    for (int64_t od = d.begin; od < d.end; ++od)
      for (int64_t oh = h.begin; oh < h.end; ++oh) {
        const T* row = given + od * walk.pooled[2] + oh * walk.pooled[3];
        const int64_t* places = chosen + od * walk.indices[2] + oh * walk.indices[3];
        for (int64_t ow = w.begin; ow < w.end; ++ow)
          if (places[ow * walk.indices[4]] == self) sum += widened(row[ow * walk.pooled[4]]);
      }
    out[offset(walk.whole, p)] = narrowed<T>(sum);
  });
  return cudaGetLastError();
}

template <class T>
cudaError_t average_backward(const PoolWalk& walk, const void* from, void* to, bool include_padding, int64_t divisor,
                             cudaStream_t stream) {
  const T* grad = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  const Visit visit(walk, false);
  grid_loop(whole_count(walk), stream, [=] __device__(int64_t i) {
    const Place p = visit.place(i);
    const Span d = covering(walk.lines[0], visit.steps[0], p.d), h = covering(walk.lines[1], visit.steps[1], p.h),
               w = covering(walk.lines[2], visit.steps[2], p.w);
    const T* given = grad + p.n * walk.pooled[0] + p.c * walk.pooled[1];
    Compute<T> sum = 0;
    for (int64_t od = d.begin; od < d.end; ++od) {
      const Span wd = window(walk.lines[0], visit.steps[0], od);
      for (int64_t oh = h.begin; oh < h.end; ++oh) {
        const Span wh = window(walk.lines[1], visit.steps[1], oh);
        const T* row = given + od * walk.pooled[2] + oh * walk.pooled[3];
        for (int64_t ow = w.begin; ow < w.end; ++ow) {
          const Span ww = window(walk.lines[2], visit.steps[2], ow);
          const Place o{p.n, p.c, od, oh, ow};
          sum += widened(row[ow * walk.pooled[4]]) /
                 static_cast<Compute<T>>(divisor_of(walk, o, wd, wh, ww, include_padding, divisor));
        }
      }
    }
    out[offset(walk.whole, p)] = narrowed<T>(sum);
  });
  return cudaGetLastError();
}

template <class Word>
void unpool(const void* from, const int64_t* indices, void* to, int64_t planes, int64_t plane, int64_t out_plane,
            int* noted, int note, cudaStream_t stream) {
  const Word* in = static_cast<const Word*>(from);
  Word* out = static_cast<Word*>(to);
  grid_loop(planes * plane, stream, [=] __device__(int64_t i) {
    const int64_t index = indices[i];
    if (index < 0 || index >= out_plane)
      *noted = note;
    else
      out[i / plane * out_plane + index] = in[i];
  });
}

// As ATen's kernel: in float32 for half types.
template <class C>
__device__ int64_t fractional_begin(const FractionalWalk& w, int axis, C sample, int64_t o) {
  const int64_t last = w.input[axis] - w.kernel[axis];
  if (o == w.output[axis] - 1) return last;
  const C alpha = static_cast<C>(last) / static_cast<C>(w.output[axis] - 1);
  const int64_t begin =
      static_cast<int64_t>((static_cast<C>(o) + sample) * alpha) - static_cast<int64_t>(sample * alpha);
  return begin < 0 ? 0 : begin > last ? last : begin;  // samples outside of [0, 1) stay in bounds
}

template <class T>
cudaError_t fractional(const FractionalWalk& walk, const void* in, const void* samples, void* out, int64_t* indices,
                       cudaStream_t stream) {
  const FractionalWalk w = walk;
  const T* from = static_cast<const T*>(in);
  const T* sample = static_cast<const T*>(samples);
  T* to = static_cast<T*>(out);
  const int64_t plane = w.input[0] * w.input[1] * w.input[2], out_plane = w.output[0] * w.output[1] * w.output[2];
  grid_loop(w.planes * out_plane, stream, [=] __device__(int64_t i) {
    using C = Compute<T>;
    const int64_t number = i / out_plane;
    int64_t rest = i % out_plane, begin[3];
    for (int axis = 2; axis >= 0; --axis) {
      const int64_t o = rest % w.output[axis];
      rest /= w.output[axis];
      // Of two dimensions the first sample is the width's.
      const int at = w.dims == 3 ? axis : 2 - axis;
      begin[axis] =
          w.dims == 2 && axis == 0 ? 0 : fractional_begin<C>(w, axis, widened(sample[number * w.dims + at]), o);
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
  switch (dtype) {
    SCONCE_FLOATING_CASES(max_pool, walk, in, out, indices, stream)
    SCONCE_INTEGER_CASES(max_pool, walk, in, out, indices, stream)
    default:
      return cudaErrorNotSupported;
  }
}

cudaError_t launch_average_pool(const PoolWalk& walk, int dtype, const void* in, void* out, bool include_padding,
                                int64_t divisor, cudaStream_t stream) {
  if (average_windows(walk, dtype, in, out, include_padding, divisor, stream)) return cudaGetLastError();
  switch (dtype) {
    SCONCE_FLOATING_CASES(average_pool, walk, in, out, include_padding, divisor, stream)
    SCONCE_DTYPE_CASE(4, int64_t, average_pool, walk, in, out, include_padding, divisor, stream)
    default:
      return cudaErrorNotSupported;
  }
}

cudaError_t launch_max_pool_backward(const PoolWalk& walk, int dtype, const void* grad, const int64_t* indices,
                                     void* out, cudaStream_t stream) {
  if (max_window_slopes(walk, dtype, grad, indices, out, stream)) return cudaGetLastError();
  switch (dtype) {
    SCONCE_FLOATING_CASES(max_backward, walk, grad, indices, out, stream)
    default:
      return cudaErrorNotSupported;
  }
}

cudaError_t launch_average_pool_backward(const PoolWalk& walk, int dtype, const void* grad, void* out,
                                         bool include_padding, int64_t divisor, cudaStream_t stream) {
  if (average_window_slopes(walk, dtype, grad, out, include_padding, divisor, stream)) return cudaGetLastError();
  switch (dtype) {
    SCONCE_FLOATING_CASES(average_backward, walk, grad, out, include_padding, divisor, stream)
    SCONCE_DTYPE_CASE(4, int64_t, average_backward, walk, grad, out, include_padding, divisor, stream)
    default:
      return cudaErrorNotSupported;
  }
}

void launch_unpool(int itemsize, const void* in, const int64_t* indices, void* out, int64_t planes, int64_t plane,
                   int64_t out_plane, int* noted, int note, cudaStream_t stream) {
  switch (itemsize) {
    case 1:
      return unpool<uint8_t>(in, indices, out, planes, plane, out_plane, noted, note, stream);
    case 2:
      return unpool<uint16_t>(in, indices, out, planes, plane, out_plane, noted, note, stream);
    case 4:
      return unpool<uint32_t>(in, indices, out, planes, plane, out_plane, noted, note, stream);
    default:
      return unpool<uint64_t>(in, indices, out, planes, plane, out_plane, noted, note, stream);
  }
}

cudaError_t launch_fractional_pool(const FractionalWalk& walk, int dtype, const void* in, const void* samples,
                                   void* out, int64_t* indices, cudaStream_t stream) {
  switch (dtype) {
    SCONCE_FLOATING_CASES(fractional, walk, in, samples, out, indices, stream)
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace sconce::cuda
