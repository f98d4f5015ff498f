#include "src/cpu/layers/quantisation_grid.h"
#include "src/cuda/device_code/division.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/layers/fake_quantize_kernels.h"

namespace sconce::cuda {
namespace {

constexpr int kThreads = 256;

// Both propagate NaN.
__device__ float lesser(float a, float b) { return a != a || a < b ? a : b; }
__device__ float greater(float a, float b) { return a != a || a > b ? a : b; }

// Combines the ranges of a block; its first thread gets the result.
__device__ void join_block(float& low, float& high) {
  __shared__ float lows[kThreads], highs[kThreads];
  lows[threadIdx.x] = low;
  highs[threadIdx.x] = high;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    lows[threadIdx.x] = lesser(lows[threadIdx.x], lows[threadIdx.x + half]);
    highs[threadIdx.x] = greater(highs[threadIdx.x], highs[threadIdx.x + half]);
  }
  low = lows[0];
  high = highs[0];
}

// Writes ranges [channels, parts, 2]; one block each.
__global__ void range_kernel(const FakeQuantisation q, const float* values, Divider inner, float* ranges) {
  if (!*q.observe) return;
  const int64_t channel = blockIdx.x, count = q.outer * q.inner;
  float low = values[channel * q.inner], high = low;
  for (int64_t i = static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.y) * kThreads) {
    int64_t outer = i;
    const int64_t at = inner.take(outer);
    const float v = values[(outer * q.channels + channel) * q.inner + at];
    low = lesser(low, v);
    high = greater(high, v);
  }
  join_block(low, high);
  if (threadIdx.x != 0) return;
  float* range = ranges + (channel * gridDim.y + blockIdx.y) * 2;
  range[0] = low;
  range[1] = high;
}

// One block per channel.
__global__ void observe_kernel(const FakeQuantisation q, const float* ranges, int64_t parts) {
  const int64_t channel = blockIdx.x;
  float now_low = 0, now_high = 0;
  if (*q.observe) {
    const float* range = ranges + channel * parts * 2;
    now_low = range[0];
    now_high = range[1];
    for (int64_t part = threadIdx.x; part < parts; part += kThreads) {
      now_low = lesser(now_low, range[part * 2]);
      now_high = greater(now_high, range[part * 2 + 1]);
    }
    join_block(now_low, now_high);
  }
  if (threadIdx.x != 0) return;
  if (*q.observe) {
    const auto moved = [&](float running, float now) {
      return isinf(running) ? now : running + q.averaging * (now - running);
    };
    q.low[channel] = moved(q.low[channel], now_low);
    q.high[channel] = moved(q.high[channel], now_high);
  }
  if (*q.quantise) {
    // ATen's kernel has no minimum for the scale.
    const QuantisationGrid grid = choose_grid(q.low[channel], q.high[channel], q.least, q.most, q.symmetric, 0);
    q.scale[channel] = grid.scale;
    q.zero_point[channel] = grid.zero_point;
  }
}

}  // namespace

int64_t range_parts(const FakeQuantisation& q) {
  constexpr int64_t kBlocks = 1024, kEach = 2048;
  const int64_t wanted = (kBlocks + q.channels - 1) / (q.channels < 1 ? 1 : q.channels),
                most = (q.outer * q.inner + kEach - 1) / kEach;
  return wanted < most ? wanted : most < 1 ? 1 : most;
}

void launch_observe(const FakeQuantisation& q, const float* values, float* ranges, cudaStream_t stream) {
  const int64_t parts = range_parts(q);
  const dim3 blocks(static_cast<unsigned>(q.channels), static_cast<unsigned>(parts));
  range_kernel<<<blocks, kThreads, 0, stream>>>(q, values, Divider(q.inner), ranges);
  observe_kernel<<<blocks.x, kThreads, 0, stream>>>(q, ranges, parts);
}

void launch_quantise(const FakeQuantisation& quantisation, const float* values, float* out, bool* mask,
                     cudaStream_t stream) {
  const FakeQuantisation q = quantisation;
  const Divider inner(q.inner), channels(q.channels);
  grid_loop(q.outer * q.channels * q.inner, stream, [=] __device__(int64_t i) {
    if (!*q.quantise) {
      out[i] = values[i];
      mask[i] = true;
      return;
    }
    int64_t outer = inner.quotient(i);
    const int64_t channel = channels.take(outer);
    const float step = q.scale[channel], zero = static_cast<float>(q.zero_point[channel]);
    const float at = nearbyintf(values[i] * (1.0f / step)) + zero, least = static_cast<float>(q.least),
                most = static_cast<float>(q.most);
    mask[i] = at >= least && at <= most;
    out[i] = (fminf(fmaxf(at, least), most) - zero) * step;
  });
}

}  // namespace sconce::cuda
