// Gradients of pooling with any window: by gathering or, where no windows overlap, by scattering.
#include <type_traits>

#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/pooling/pooling_kernels.h"
#include "src/cuda/pooling/pooling_lines.cuh"
#include "src/cuda/pooling/pooling_packs.cuh"
#include "src/cuda/pooling/pooling_windows.h"

namespace sconce::cuda {
namespace {

template <class T, class I>
cudaError_t gather_maxima(const PoolWalk& walk, const T* grad, const int64_t* indices, T* out, cudaStream_t stream) {
  const Planes<I> planes(walk);
  grid_loop(whole_count(walk), stream, [=] __device__(int64_t i) {
    const Place<I> p = planes.template place<false>(i);
    const Line<I>&depth = planes.lines[0], &height = planes.lines[1], &width = planes.lines[2];
    const Span<I> d = depth.covering(p.d), h = height.covering(p.h), w = width.covering(p.w);
    const I self = (p.d * height.input + p.h) * width.input + p.w;
    const T* grads = grad + (p.n * planes.pooled[0] + p.c * planes.pooled[1]);
    const int64_t* chosen = indices + (p.n * planes.indices[0] + p.c * planes.indices[1]);
    Compute<T> sum = 0;
    for (I od = d.begin; od < d.end; ++od)
      for (I oh = h.begin; oh < h.end; ++oh)
        for (I ow = w.begin; ow < w.end; ++ow)
          if (chosen[od * planes.indices[2] + oh * planes.indices[3] + ow * planes.indices[4]] == self)
            sum += widened(grads[od * planes.pooled[2] + oh * planes.pooled[3] + ow * planes.pooled[4]]);
    out[Planes<I>::offset(planes.whole, p)] = narrowed<T>(sum);
  });
  return cudaGetLastError();
}

// For windows without a common element; `out` is zeroed before.
template <class T, class I>
cudaError_t scatter_maxima(const PoolWalk& walk, const T* grad, const int64_t* indices, T* out, cudaStream_t stream) {
  const Planes<I> planes(walk);
  const int64_t plane = walk.lines[0].input * walk.lines[1].input * walk.lines[2].input;
  grid_loop(pooled_count(walk), stream, [=] __device__(int64_t i) {
    const Place<I> o = planes.template place<true>(i);
    const int64_t index = indices[Planes<I>::offset(planes.indices, o)];
    if (index < 0 || index >= plane) return;
    const Place<I> p = planes.at(o.n, o.c, static_cast<I>(index));
    // An index outside its window adds nothing, as when gathering.
    if (planes.reaches(o, p))
      out[Planes<I>::offset(planes.whole, p)] =
          narrowed<T>(Compute<T>(0) + widened(grad[Planes<I>::offset(planes.pooled, o)]));
  });
  return cudaGetLastError();
}

// Adds the gradients whose index lies outside the reach of their window (windows whose dilated steps skip the input).
// One thread per plane, so the order of sums is fixed.
template <class T, class I>
cudaError_t add_stray_maxima(const PoolWalk& walk, const T* grad, const int64_t* indices, T* out, cudaStream_t stream) {
  const Planes<I> planes(walk);
  const int64_t plane = walk.lines[0].input * walk.lines[1].input * walk.lines[2].input;
  const int64_t pooled = walk.lines[0].output * walk.lines[1].output * walk.lines[2].output;
  grid_loop(walk.batch * walk.channels, stream, [=] __device__(int64_t number) {
    auto n = static_cast<I>(number);
    const I c = take(planes.channels, n);
    for (int64_t i = 0; i < pooled; ++i) {
      auto rest = static_cast<I>(i);
      Place<I> o{n, c, 0, 0, 0};
      o.w = take(planes.lines[2].outputs, rest);
      o.h = take(planes.lines[1].outputs, rest);
      o.d = rest;
      const int64_t index = indices[Planes<I>::offset(planes.indices, o)];
      if (index < 0 || index >= plane) continue;
      const Place<I> p = planes.at(n, c, static_cast<I>(index));
      if (planes.reaches(o, p)) continue;
      T& sum = out[Planes<I>::offset(planes.whole, p)];
      sum = narrowed<T>(widened(sum) + widened(grad[Planes<I>::offset(planes.pooled, o)]));
    }
  });
  return cudaGetLastError();
}

bool windows_overlap(const PoolWalk& walk) {
  for (const PoolLine& l : walk.lines)
    if (l.output > 1 && (l.adaptive ? l.input % l.output != 0 : l.stride < (l.kernel - 1) * l.dilation + 1))
      return true;
  return false;
}

template <class T, class I>
cudaError_t max_slopes(const PoolWalk& walk, const T* grad, const int64_t* indices, T* out, cudaStream_t stream) {
  cudaError_t error;
  if (windows_overlap(walk)) {
    error = try_packs<T, true>(walk, grad, indices, out, false, 0, stream)
                ? cudaGetLastError()
                : gather_maxima<T, I>(walk, grad, indices, out, stream);
  } else {
    error = cudaMemsetAsync(out, 0, static_cast<size_t>(whole_count(walk)) * sizeof(T), stream);
    if (error == cudaSuccess) error = scatter_maxima<T, I>(walk, grad, indices, out, stream);
  }
  if (error != cudaSuccess || !walk.stray_indices) return error;
  return add_stray_maxima<T, I>(walk, grad, indices, out, stream);
}

template <class T>
cudaError_t max_backward(const PoolWalk& walk, const void* from, const int64_t* indices, void* to,
                         cudaStream_t stream) {
  const T* grad = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  return small_planes(walk) ? max_slopes<T, int32_t>(walk, grad, indices, out, stream)
                            : max_slopes<T, int64_t>(walk, grad, indices, out, stream);
}

template <class T, class I>
cudaError_t gather_averages(const PoolWalk& walk, const T* grad, T* out, bool include_padding, int64_t given,
                            cudaStream_t stream) {
  const Planes<I> planes(walk);
  grid_loop(whole_count(walk), stream, [=] __device__(int64_t i) {
    using C = Compute<T>;
    const Place<I> p = planes.template place<false>(i);
    const Line<I>&depth = planes.lines[0], &height = planes.lines[1], &width = planes.lines[2];
    const Span<I> d = depth.covering(p.d), h = height.covering(p.h), w = width.covering(p.w);
    const T* grads = grad + (p.n * planes.pooled[0] + p.c * planes.pooled[1]);
    const C divisor = static_cast<C>(given);
    C sum = 0;
    for (I od = d.begin; od < d.end; ++od) {
      const I deep = depth.side(od, include_padding);
      for (I oh = h.begin; oh < h.end; ++oh) {
        const I face = deep * height.side(oh, include_padding);
        for (I ow = w.begin; ow < w.end; ++ow)
          sum += widened(grads[od * planes.pooled[2] + oh * planes.pooled[3] + ow * planes.pooled[4]]) /
                 (given ? divisor : static_cast<C>(face * width.side(ow, include_padding)));
      }
    }
    out[Planes<I>::offset(planes.whole, p)] = narrowed<T>(sum);
  });
  return cudaGetLastError();
}

template <class T>
cudaError_t average_backward(const PoolWalk& walk, const void* from, void* to, bool include_padding, int64_t divisor,
                             cudaStream_t stream) {
  const T* grad = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  if constexpr (!std::is_same_v<T, int64_t>)
    if (try_packs<T, false>(walk, grad, nullptr, out, include_padding, divisor, stream)) return cudaGetLastError();
  return small_planes(walk) ? gather_averages<T, int32_t>(walk, grad, out, include_padding, divisor, stream)
                            : gather_averages<T, int64_t>(walk, grad, out, include_padding, divisor, stream);
}

}  // namespace

cudaError_t launch_max_pool_backward(const PoolWalk& walk, int dtype, const void* grad, const int64_t* indices,
                                     void* out, cudaStream_t stream) {
  if (max_window_slopes(walk, dtype, grad, indices, out, stream)) return cudaGetLastError();
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_FLOATING_CASES(max_backward, walk, grad, indices, out, stream));
}

cudaError_t launch_average_pool_backward(const PoolWalk& walk, int dtype, const void* grad, void* out,
                                         bool include_padding, int64_t divisor, cudaStream_t stream) {
  if (average_window_slopes(walk, dtype, grad, out, include_padding, divisor, stream)) return cudaGetLastError();
  SCONCE_RETURN_BY_DTYPE(
      dtype, SCONCE_FLOATING_CASES(average_backward, walk, grad, out, include_padding, divisor, stream)
                 SCONCE_DTYPE_CASE(4, int64_t, average_backward, walk, grad, out, include_padding, divisor, stream));
}

}  // namespace sconce::cuda
