#include "src/cuda/fake_quantize_kernels.h"
#include "src/cuda/grid_loop.cuh"
#include "src/ops/quantisation_grid.h"

namespace sconce::cuda {
namespace {

constexpr int kThreads = 256;

// NaN stays.
__device__ float lesser(float a, float b) { return a != a || a < b ? a : b; }
__device__ float greater(float a, float b) { return a != a || a > b ? a : b; }

// A block for each channel.
__global__ void observe_kernel(const FakeQuantisation q, const float* values) {
  __shared__ float lows[kThreads], highs[kThreads];
  const int64_t channel = blockIdx.x;
  if (*q.observe) {
    const int64_t count = q.outer * q.inner;
    float low = values[channel * q.inner], high = low;
    for (int64_t i = threadIdx.x; i < count; i += kThreads) {
      const float v = values[(i / q.inner * q.channels + channel) * q.inner + i % q.inner];
      low = lesser(low, v);
      high = greater(high, v);
    }
    lows[threadIdx.x] = low;
    highs[threadIdx.x] = high;
    for (int half = kThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x >= half) continue;
      lows[threadIdx.x] = lesser(lows[threadIdx.x], lows[threadIdx.x + half]);
      highs[threadIdx.x] = greater(highs[threadIdx.x], highs[threadIdx.x + half]);
    }
  }
  if (threadIdx.x != 0) return;
  if (*q.observe) {
    const auto moved = [&](float running, float now) {
      return isinf(running) ? now : running + q.averaging * (now - running);
    };
    q.low[channel] = moved(q.low[channel], lows[0]);
    q.high[channel] = moved(q.high[channel], highs[0]);
  }
  if (*q.quantise) {
    // ATen's kernel has no least scale.
    const QuantisationGrid grid = choose_grid(q.low[channel], q.high[channel], q.least, q.most, q.symmetric, 0);
    q.scale[channel] = static_cast<float>(grid.scale);
    q.zero_point[channel] = grid.zero_point;
  }
}

}  // namespace

void launch_observe(const FakeQuantisation& quantisation, const float* values, cudaStream_t stream) {
  observe_kernel<<<static_cast<unsigned>(quantisation.channels), kThreads, 0, stream>>>(quantisation, values);
}

void launch_quantise(const FakeQuantisation& quantisation, const float* values, float* out, bool* mask,
                     cudaStream_t stream) {
  const FakeQuantisation q = quantisation;
  grid_loop(q.outer * q.channels * q.inner, stream, [=] __device__(int64_t i) {
    if (!*q.quantise) {
      out[i] = values[i];
      mask[i] = true;
      return;
    }
    const int64_t channel = i / q.inner % q.channels;
    const float step = q.scale[channel], zero = static_cast<float>(q.zero_point[channel]);
    const float at = nearbyintf(values[i] * (1.0f / step)) + zero, least = static_cast<float>(q.least),
                most = static_cast<float>(q.most);
    mask[i] = at >= least && at <= most;
    out[i] = (fminf(fmaxf(at, least), most) - zero) * step;
  });
}

}  // namespace sconce::cuda
