// Pooling with any window. Offsets have type I: int32_t if all computed numbers stay below 2^31, else int64_t.
#pragma once

#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/division.cuh"
#include "src/cuda/pooling/pooling_kernels.h"

namespace sconce::cuda {

// n must not be negative.
__device__ inline int32_t quotient(const Divider& by, int32_t n) {
  return static_cast<int32_t>(by.small_quotient(static_cast<uint32_t>(n)));
}
__device__ inline int64_t quotient(const Divider& by, int64_t n) { return by.quotient(n); }
// Replaces n by the quotient and returns the remainder.
template <class I>
__device__ I take(const Divider& by, I& n) {
  const I q = quotient(by, n), rest = n - q * static_cast<I>(by.divisor());
  n = q;
  return rest;
}

template <class I>
struct Span {
  I begin, end;
};

template <class I>
struct Line {
  Line() = default;
  explicit Line(const PoolLine& l)
      : input(static_cast<I>(l.input)),
        output(static_cast<I>(l.output)),
        kernel(static_cast<I>(l.kernel)),
        stride(static_cast<I>(l.stride)),
        padding(static_cast<I>(l.padding)),
        dilation(static_cast<I>(l.dilation)),
        adaptive(l.adaptive),
        inputs(l.input),
        outputs(l.output),
        steps(l.stride) {}

  // The part of the input that the window of output o covers, in steps of dilation.
  __device__ Span<I> window(I o) const {
    if (adaptive) return {quotient(outputs, o * input), quotient(outputs, (o + 1) * input + output - 1)};
    const I begin = o * stride - padding, end = begin + (kernel - 1) * dilation + 1;
    return {begin < 0 ? begin + (-begin + dilation - 1) / dilation * dilation : begin, end < input ? end : input};
  }
  // Outputs whose windows span input i. Without dilation they contain it.
  __device__ Span<I> covering(I i) const {
    if (adaptive) return {quotient(inputs, i * output), quotient(inputs, (i + 1) * output + input - 1)};
    const I at = i + padding, reach = (kernel - 1) * dilation + 1, end = quotient(steps, at) + 1;
    return {at < reach ? 0 : quotient(steps, at - reach) + 1, end < output ? end : output};
  }
  // Whether input i lies between the ends of output o's window, on a step of dilation or not.
  __device__ bool reaches(I o, I i) const {
    const Span<I> outputs_of = covering(i);
    return outputs_of.begin <= o && o < outputs_of.end;
  }
  // The side of output o's window that averages divide by; averages have no dilation.
  __device__ I side(I o, bool include_padding) const {
    if (!include_padding) {
      const Span<I> covered = window(o);
      return covered.end - covered.begin;
    }
    const I begin = o * stride - padding, end = begin + kernel, last = input + padding;
    return (end < last ? end : last) - begin;
  }

  I input, output, kernel, stride, padding, dilation;
  bool adaptive;
  Divider inputs, outputs, steps;
};

// Coordinates: batch, channel, depth, height, width.
template <class I>
struct Place {
  I n, c, d, h, w;
};

template <class I>
struct Planes {
  explicit Planes(const PoolWalk& walk) : channels(walk.channels), channels_last(walk.channels_last) {
    for (int i = 0; i < 3; ++i) lines[i] = Line<I>(walk.lines[i]);
    for (int i = 0; i < 5; ++i) {
      whole[i] = static_cast<I>(walk.whole[i]);
      pooled[i] = static_cast<I>(walk.pooled[i]);
      indices[i] = static_cast<I>(walk.indices[i]);
    }
  }
  // The coordinates of element `number` of the pooled or the other side, in visiting order.
  template <bool kPooled>
  __device__ Place<I> place(int64_t number) const {
    auto i = static_cast<I>(number);
    Place<I> p;
    if (channels_last) p.c = take(channels, i);
    p.w = take(kPooled ? lines[2].outputs : lines[2].inputs, i);
    p.h = take(kPooled ? lines[1].outputs : lines[1].inputs, i);
    p.d = take(kPooled ? lines[0].outputs : lines[0].inputs, i);
    if (!channels_last) p.c = take(channels, i);
    p.n = i;
    return p;
  }
  // The coordinates on the other side of an index into its plane.
  __device__ Place<I> at(I n, I c, I index) const {
    Place<I> p{n, c, 0, 0, 0};
    p.w = take(lines[2].inputs, index);
    p.h = take(lines[1].inputs, index);
    p.d = index;
    return p;
  }
  __device__ bool reaches(const Place<I>& o, const Place<I>& p) const {
    return lines[0].reaches(o.d, p.d) && lines[1].reaches(o.h, p.h) && lines[2].reaches(o.w, p.w);
  }
  __device__ static I offset(const I (&strides)[5], const Place<I>& p) {
    return p.n * strides[0] + p.c * strides[1] + p.d * strides[2] + p.h * strides[3] + p.w * strides[4];
  }

  Line<I> lines[3];
  I whole[5], pooled[5], indices[5];
  Divider channels;
  bool channels_last;
};

inline int64_t pooled_count(const PoolWalk& w) {
  return w.batch * w.channels * w.lines[0].output * w.lines[1].output * w.lines[2].output;
}
inline int64_t whole_count(const PoolWalk& w) {
  return w.batch * w.channels * w.lines[0].input * w.lines[1].input * w.lines[2].input;
}

// Whether Planes<int32_t> suffices; computed in double, which does not overflow.
inline bool small_planes(const PoolWalk& walk) {
  double reach[3] = {}, kernels = 1, most = static_cast<double>(pooled_count(walk));
  const auto more = [&](double v) { most = v > most ? v : most; };
  more(static_cast<double>(whole_count(walk)));
  for (int d = 0; d < 5; ++d) {
    const bool line = d >= 2;
    const double in = static_cast<double>(line ? walk.lines[d - 2].input : d == 0 ? walk.batch : walk.channels);
    const double out = line ? static_cast<double>(walk.lines[d - 2].output) : in;
    reach[0] += in * static_cast<double>(walk.whole[d]);
    reach[1] += out * static_cast<double>(walk.pooled[d]);
    reach[2] += out * static_cast<double>(walk.indices[d]);
  }
  for (const PoolLine& l : walk.lines) {
    const auto in = static_cast<double>(l.input), out = static_cast<double>(l.output);
    const double window = static_cast<double>(l.kernel) * static_cast<double>(l.dilation);
    kernels *= static_cast<double>(l.kernel);
    if (l.adaptive)
      more((in + 1) * (out + 1));
    else
      more(out * static_cast<double>(l.stride) + window + in + 2 * static_cast<double>(l.padding));
  }
  more(kernels);
  for (const double r : reach) more(r);
  return most < INT32_MAX;
}

}  // namespace sconce::cuda
