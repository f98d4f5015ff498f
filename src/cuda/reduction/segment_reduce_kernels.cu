#include <cmath>

#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/reduction/segment_reduce_kernels.h"

namespace sconce::cuda {
namespace {

template <class C>
__device__ C start_of(const SegmentCall& c) {
  if (c.has_initial) return static_cast<C>(c.initial);
  switch (c.kind) {
    case SegmentKind::kMax:
      return -static_cast<C>(INFINITY);
    case SegmentKind::kMin:
      return static_cast<C>(INFINITY);
    default:
      return c.kind == SegmentKind::kProduct ? C(1) : C(0);
  }
}

template <class C>
__device__ C join(SegmentKind kind, C so_far, C value) {
  switch (kind) {
    case SegmentKind::kMax:
      return is_nan(value) || so_far < value ? value : so_far;
    case SegmentKind::kMin:
      return is_nan(value) || value < so_far ? value : so_far;
    case SegmentKind::kProduct:
      return so_far * value;
    default:
      return so_far + value;
  }
}

// False if the bounds are invalid.
__device__ bool segment(const SegmentCall& c, int64_t row, int64_t number, int64_t& begin, int64_t& length) {
  const int64_t* bound = c.bounds + row * (c.count + 1) + number;
  begin = bound[0];
  length = bound[1] - bound[0];
  if (begin >= 0 && length >= 0 && bound[1] <= c.size) return true;
  *c.noted = c.note;
  return false;
}

template <class T>
cudaError_t reduce(const SegmentCall& call, void* out, cudaStream_t stream) {
  const SegmentCall c = call;
  const T* data = static_cast<const T*>(c.data);
  T* to = static_cast<T*>(out);
  grid_loop(c.outer * c.count * c.inner, stream, [=] __device__(int64_t i) {
    using C = Compute<T>;
    const int64_t inner = i % c.inner, number = i / c.inner % c.count, row = i / (c.inner * c.count);
    int64_t begin, length;
    if (!segment(c, row, number, begin, length)) return;
    const T* from = data + (row * c.size + begin) * c.inner + inner;
    C value = start_of<C>(c);
    for (int64_t k = 0; k < length; ++k) value = join(c.kind, value, widened(from[k * c.inner]));
    if (c.kind == SegmentKind::kMean) {
      if (length > 0)
        value /= static_cast<C>(length);
      else if (!c.has_initial)
        value = static_cast<C>(NAN);
    }
    to[i] = narrowed<T>(value);
  });
  return cudaGetLastError();
}

template <class T>
cudaError_t slopes(const SegmentCall& call, const void* grads, const void* results, void* out, cudaStream_t stream) {
  const SegmentCall c = call;
  const T* data = static_cast<const T*>(c.data);
  const T* grad_of = static_cast<const T*>(grads);
  const T* result_of = static_cast<const T*>(results);
  T* to_all = static_cast<T*>(out);
  grid_loop(c.outer * c.count * c.inner, stream, [=] __device__(int64_t i) {
    using C = Compute<T>;
    const int64_t inner = i % c.inner, number = i / c.inner % c.count, row = i / (c.inner * c.count);
    int64_t begin, length;
    if (!segment(c, row, number, begin, length)) return;
    const int64_t first = (row * c.size + begin) * c.inner + inner;
    const T* from = data + first;
    T* to = to_all + first;
    const C grad = widened(grad_of[i]), result = widened(result_of[i]);
    if (c.kind == SegmentKind::kSum || c.kind == SegmentKind::kMean) {
      const C each = c.kind == SegmentKind::kSum ? grad : grad / static_cast<C>(length);
      for (int64_t k = 0; k < length; ++k) to[k * c.inner] = narrowed<T>(each);
      return;
    }
    if (c.kind != SegmentKind::kProduct) {
      const auto chosen = [&](int64_t k) {
        const C value = widened(from[k * c.inner]);
        return is_nan(value) || value == result;
      };
      int64_t count = 0;
      for (int64_t k = 0; k < length; ++k) count += chosen(k);
      // With several extrema, ATen divides positive gradients only.
      const C each = count > 1 && grad > C(0) ? grad / static_cast<C>(count) : grad;
      for (int64_t k = 0; k < length; ++k)
        if (chosen(k)) to[k * c.inner] = narrowed<T>(each);
      return;
    }
    const C start = start_of<C>(c);
    for (int64_t k = 0; k < length; ++k) {
      const C value = widened(from[k * c.inner]);
      if (!is_nan(value) && value != C(0)) {
        to[k * c.inner] = narrowed<T>(grad * result / value);
        continue;
      }
      C others = start;
      for (int64_t other = 0; other < length; ++other)
        if (other != k) others *= widened(from[other * c.inner]);
      to[k * c.inner] = narrowed<T>(grad * others);
    }
  });
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_segments(const SegmentCall& call, void* out, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(call.dtype, SCONCE_FLOATING_CASES(reduce, call, out, stream));
}

cudaError_t launch_segment_slopes(const SegmentCall& call, const void* grads, const void* results, void* out,
                                  cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(call.dtype, SCONCE_FLOATING_CASES(slopes, call, grads, results, out, stream));
}

void launch_segment_bounds(const int64_t* sums, int64_t outer, int64_t count, int64_t* bounds, cudaStream_t stream) {
  grid_loop(outer * (count + 1), stream, [=] __device__(int64_t i) {
    const int64_t s = i % (count + 1), row = i / (count + 1);
    bounds[i] = s == 0 ? 0 : sums[row * count + s - 1];
  });
}

}  // namespace sconce::cuda
