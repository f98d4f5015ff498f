// Gradients of pooling, several inputs a thread: neighbours of a row, or channels where those are adjacent. They share
// most of the search for their windows. Sums have the general kernels' order.
#pragma once

#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/pooling/pooling_lines.cuh"

namespace sconce::cuda {

constexpr int kInputsAtOnce = 4;

// Whether channels can be taken in packs; averages have null indices.
inline bool packs_of_channels(const PoolWalk& walk, const void* whole, const void* pooled, const int64_t* indices,
                              int itemsize) {
  const auto fits = [&](const void* data, const int64_t(&strides)[5], int bytes) {
    bool good = reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(kInputsAtOnce * bytes) == 0;
    for (int d = 0; d < 5; ++d) good = good && (d == 1 ? strides[d] == 1 : strides[d] % kInputsAtOnce == 0);
    return good;
  };
  return walk.channels_last && walk.channels % kInputsAtOnce == 0 && fits(whole, walk.whole, itemsize) &&
         fits(pooled, walk.pooled, itemsize) && (!indices || fits(indices, walk.indices, sizeof(int64_t)));
}

// kLast: packs of channels, else of neighbours. include_padding, divisor: of averages.
template <class T, bool kMaxima, bool kLast>
void slopes_in_packs(const PoolWalk& walk, const T* grad, const int64_t* indices, T* out, bool include_padding,
                     int64_t divisor, cudaStream_t stream) {
  using I = int32_t;
  using C = Compute<T>;
  constexpr int kSpans = kLast ? 1 : kInputsAtOnce;
  const Planes<I> planes(walk);
  const int64_t columns = kLast ? walk.lines[2].input : (walk.lines[2].input + kInputsAtOnce - 1) / kInputsAtOnce;
  const int64_t channels = kLast ? walk.channels / kInputsAtOnce : walk.channels;
  const Divider by_channels(channels), by_columns(columns);
  const bool whole_packs = kLast || (walk.lines[2].input % kInputsAtOnce == 0 &&
                                     reinterpret_cast<uintptr_t>(out) % (kInputsAtOnce * sizeof(T)) == 0);
  const int64_t count = walk.batch * channels * walk.lines[0].input * walk.lines[1].input * columns;
  grid_loop(count, stream, [=] __device__(int64_t number) {
    const Line<I>&depth = planes.lines[0], &height = planes.lines[1], &width = planes.lines[2];
    auto i = static_cast<I>(number);
    Place<I> p;
    if (kLast) p.c = take(by_channels, i) * kInputsAtOnce;
    p.w = take(by_columns, i) * kSpans;
    p.h = take(height.inputs, i);
    p.d = take(depth.inputs, i);
    if (!kLast) p.c = take(by_channels, i);
    p.n = i;
    const Span<I> d = depth.covering(p.d), h = height.covering(p.h);
    Span<I> w[kSpans];
#pragma unroll
    for (int k = 0; k < kSpans; ++k) w[k] = width.covering(min(p.w + k, width.input - 1));
    const I self = (p.d * height.input + p.h) * width.input + p.w;
    const T* grads = grad + (p.n * planes.pooled[0] + p.c * planes.pooled[1]);
    const int64_t* chosen = kMaxima ? indices + (p.n * planes.indices[0] + p.c * planes.indices[1]) : nullptr;
    C sums[kInputsAtOnce] = {};
    for (I od = d.begin; od < d.end; ++od) {
      const I deep = kMaxima ? 1 : depth.side(od, include_padding);
      for (I oh = h.begin; oh < h.end; ++oh) {
        const I face = kMaxima ? 1 : deep * height.side(oh, include_padding);
        for (I ow = w[0].begin; ow < w[kSpans - 1].end; ++ow) {
          const T* from = grads + (od * planes.pooled[2] + oh * planes.pooled[3] + ow * planes.pooled[4]);
          const int64_t* at =
              kMaxima ? chosen + (od * planes.indices[2] + oh * planes.indices[3] + ow * planes.indices[4]) : nullptr;
          const C by = kMaxima   ? C(1)
                       : divisor ? static_cast<C>(divisor)
                                 : static_cast<C>(face * width.side(ow, include_padding));
          if constexpr (kLast) {
            const auto given = *reinterpret_cast<const Pack<T, kInputsAtOnce>*>(from);
            Pack<int64_t, kInputsAtOnce> places;
            if constexpr (kMaxima) places = *reinterpret_cast<const Pack<int64_t, kInputsAtOnce>*>(at);
#pragma unroll
            for (int k = 0; k < kInputsAtOnce; ++k) {
              if constexpr (kMaxima) {
                if (places.at[k] == self) sums[k] += widened(given.at[k]);
              } else {
                sums[k] += widened(given.at[k]) / by;
              }
            }
          } else {
            const int64_t distance = kMaxima ? *at - self : 0;
            if (distance < 0 || distance >= kInputsAtOnce) continue;
            const C value = kMaxima ? widened(*from) : widened(*from) / by;
#pragma unroll
            for (int k = 0; k < kInputsAtOnce; ++k)
              if (w[k].begin <= ow && ow < w[k].end && (!kMaxima || distance == k)) sums[k] += value;
          }
        }
      }
    }
    T* to = out + Planes<I>::offset(planes.whole, p);
    Pack<T, kInputsAtOnce> made;
#pragma unroll
    for (int k = 0; k < kInputsAtOnce; ++k) made.at[k] = narrowed<T>(sums[k]);
    if (whole_packs) {
      *reinterpret_cast<Pack<T, kInputsAtOnce>*>(to) = made;
    } else {
#pragma unroll
      for (int k = 0; k < kInputsAtOnce; ++k)
        if (p.w + k < width.input) to[k] = made.at[k];
    }
  });
}

// False if these kernels do not apply.
template <class T, bool kMaxima>
bool try_packs(const PoolWalk& walk, const T* grad, const int64_t* indices, T* out, bool include_padding,
               int64_t divisor, cudaStream_t stream) {
  if (!small_planes(walk)) return false;
  if (packs_of_channels(walk, out, grad, indices, sizeof(T)))
    slopes_in_packs<T, kMaxima, true>(walk, grad, indices, out, include_padding, divisor, stream);
  else if (!walk.channels_last && walk.whole[4] == 1 && walk.lines[2].input > 1)
    slopes_in_packs<T, kMaxima, false>(walk, grad, indices, out, include_padding, divisor, stream);
  else
    return false;
  return true;
}

}  // namespace sconce::cuda
