#include <cmath>

#include "src/cuda/attention/attention_dropout.cuh"
#include "src/cuda/attention/attention_gradient_kernels.h"
#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/device_code/warp_sum.cuh"

namespace sconce::cuda {
namespace {

constexpr int kThreads = 256;

__device__ float block_sum(float value, float* shared) {
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0;
  for (int w = 0; w < kThreads / 32; ++w) value += shared[w];
  __syncthreads();
  return value;
}

__device__ float probability(const GradientRows& p, const float* bias, float score, int64_t query, int64_t column,
                             float logsumexp) {
  if ((p.causal && column > query + p.diagonal) || (p.bounded && column < query + p.lowest)) return 0;
  score *= p.scale;
  if (bias) score += bias[column * p.bias_strides[3]];
  return isinf(logsumexp) ? 0.0f : expf(score - logsumexp);
}

// No `__restrict__`: results may overlap operands; one thread reads and writes an element.
template <class T>
__global__ void __launch_bounds__(kThreads)
    gradient_kernel(GradientRows p, const float* scores, const float* gradients, T* probabilities, T* score_gradients) {
  __shared__ float shared[kThreads / 32];
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const int64_t query = row % p.queries, flat = row / p.queries + p.first_head;
    const float* bias = p.bias ? p.bias + flat / p.heads * p.bias_strides[0] + flat % p.heads * p.bias_strides[1] +
                                     query * p.bias_strides[2]
                               : nullptr;
    const float logsumexp = p.logsumexp[flat * p.logsumexp_rows + query];
    const int64_t at = row * p.columns;
    const int64_t batch = flat / p.heads, head = flat % p.heads;
    float sum = 0;
    for (int64_t c = threadIdx.x; c < p.columns; c += kThreads)
      sum += probability(p, bias, scores[at + c], query, c, logsumexp) * gradients[at + c] *
             dropout_factor(p.dropout, batch, head, query, c);
    sum = block_sum(sum, shared);
    for (int64_t c = threadIdx.x; c < p.columns; c += kThreads) {
      const float share = probability(p, bias, scores[at + c], query, c, logsumexp);
      const float factor = dropout_factor(p.dropout, batch, head, query, c);
      const float gradient = share == 0 ? 0.0f : share * (gradients[at + c] * factor - sum);
      probabilities[at + c] = narrowed<T>(share * factor);
      score_gradients[at + c] = narrowed<T>(gradient);
    }
  }
}

template <class T>
void sum_groups(const void* source, void* target, int64_t outer, int64_t count, int64_t inner, cudaStream_t stream) {
  const T* from = static_cast<const T*>(source);
  T* to = static_cast<T*>(target);
  grid_loop(outer * inner, stream, [=] __device__(int64_t i) {
    const T* at = from + i / inner * count * inner + i % inner;
    float sum = 0;
    for (int64_t k = 0; k < count; ++k) sum += widened(at[k * inner]);
    to[i] = narrowed<T>(sum);
  });
}

}  // namespace

void launch_gradient_rows(const GradientRows& rows, const float* scores, const float* gradients, void* probabilities,
                          void* score_gradients, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(rows.rows < (1 << 20) ? rows.rows : 1 << 20);
  const auto run = [&](auto element) {
    using T = decltype(element);
    gradient_kernel<T><<<blocks, kThreads, 0, stream>>>(rows, scores, gradients, static_cast<T*>(probabilities),
                                                        static_cast<T*>(score_gradients));
  };
  switch (rows.type) {
    case 5:
      return run(__half());
    case 15:
      return run(__nv_bfloat16());
    default:
      return run(float());
  }
}

void launch_sum_groups(int type, const void* from, void* to, int64_t outer, int64_t count, int64_t inner,
                       cudaStream_t stream) {
  switch (type) {
    case 5:
      return sum_groups<__half>(from, to, outer, count, inner, stream);
    case 15:
      return sum_groups<__nv_bfloat16>(from, to, outer, count, inner, stream);
    default:
      return sum_groups<float>(from, to, outer, count, inner, stream);
  }
}

}  // namespace sconce::cuda
