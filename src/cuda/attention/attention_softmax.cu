#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "src/cuda/attention/attention_dropout.cuh"
#include "src/cuda/attention/attention_softmax.h"

namespace sconce::cuda {
namespace {

constexpr int kThreads = 256;

__device__ float block_reduce(float value, bool maximum, float* shared) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(0xFFFFFFFFu, value, offset);
    value = maximum ? fmaxf(value, other) : value + other;
  }
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  const int warps = blockDim.x / 32;
  value = shared[0];
  for (int w = 1; w < warps; ++w) value = maximum ? fmaxf(value, shared[w]) : value + shared[w];
  __syncthreads();
  return value;
}

__global__ void softmax_kernel(SoftmaxRows p, float* scores, float* logsumexp) {
  __shared__ float shared[32];
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    float* at = scores + row * p.columns;
    const int64_t query = row % p.queries, flat = row / p.queries + p.first_head, head = flat % p.heads,
                  batch = flat / p.heads;
    const float* bias =
        p.bias ? p.bias + batch * p.bias_strides[0] + head * p.bias_strides[1] + query * p.bias_strides[2] : nullptr;
    const float slope = p.slopes ? p.slopes[batch * p.slope_strides[0] + head * p.slope_strides[1]] : 0.0f;
    float most = -INFINITY;
    for (int64_t c = threadIdx.x; c < p.columns; c += blockDim.x) {
      float v = at[c] * p.scale;
      if (bias) v += bias[c * p.bias_strides[3]];
      if (p.slopes) {
        const int64_t away = query + p.slope_base - c;
        v += slope * static_cast<float>(p.slope_by_key ? c : away < 0 ? away : -away);
      }
      if ((p.causal && c > query + p.diagonal) || (p.bounded && c < query + p.lowest)) v = -INFINITY;
      at[c] = v;
      most = fmaxf(most, v);
    }
    most = block_reduce(most, true, shared);
    const float base = most == -INFINITY ? 0.0f : most;  // for a row that sees no key
    float sum = 0;
    for (int64_t c = threadIdx.x; c < p.columns; c += blockDim.x) {
      const float e = expf(at[c] - base);
      at[c] = e;
      sum += e;
    }
    sum = block_reduce(sum, false, shared);
    const float inverse = sum > 0 ? 1 / sum : 0.0f;
    if (p.dropout.stream != AttentionDropout::Stream::kNone)
      for (int64_t c = threadIdx.x; c < p.columns; c += blockDim.x)
        at[c] *= dropout_factor(p.dropout, batch, head, query, c);
    if (!p.halves) {
      for (int64_t c = threadIdx.x; c < p.columns; c += blockDim.x) at[c] *= inverse;
    } else if (p.half_type == 5) {
      auto* half = static_cast<__half*>(p.halves) + row * p.columns;
      for (int64_t c = threadIdx.x; c < p.columns; c += blockDim.x) half[c] = __float2half_rn(at[c] * inverse);
    } else {
      auto* half = static_cast<__nv_bfloat16*>(p.halves) + row * p.columns;
      for (int64_t c = threadIdx.x; c < p.columns; c += blockDim.x) half[c] = __float2bfloat16_rn(at[c] * inverse);
    }
    if (logsumexp && threadIdx.x == 0) logsumexp[row] = sum == 0 ? p.empty_logsumexp : base + logf(sum);
    __syncthreads();
  }
}

}  // namespace

void launch_softmax(const SoftmaxRows& rows, float* scores, float* logsumexp, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(rows.rows < (1 << 20) ? rows.rows : 1 << 20);
  softmax_kernel<<<blocks, kThreads, 0, stream>>>(rows, scores, logsumexp);
}

}  // namespace sconce::cuda
