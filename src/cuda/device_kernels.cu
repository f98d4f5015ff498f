#include "src/cuda/device_kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "src/cuda/attention_dropout.cuh"

namespace sconce::cuda {
namespace {

constexpr int kThreads = 256;

unsigned blocks_for(int64_t count) {
  const int64_t blocks = (count + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < (1 << 20) ? blocks : 1 << 20);
}

template <class F>
__global__ void for_each_kernel(int64_t count, F body) {
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x)
    body(i);
}

__device__ bool is_nonzero(const void* elements, int dtype, int64_t i) {
  switch (dtype) {
    case 5: return __half2float(static_cast<const __half*>(elements)[i]) != 0;
    case 6: return static_cast<const float*>(elements)[i] != 0;
    case 7: return static_cast<const double*>(elements)[i] != 0;
    case 8:
      return __half2float(static_cast<const __half*>(elements)[2 * i]) != 0 ||
             __half2float(static_cast<const __half*>(elements)[2 * i + 1]) != 0;
    case 9: return static_cast<const float*>(elements)[2 * i] != 0 || static_cast<const float*>(elements)[2 * i + 1] != 0;
    case 10:
      return static_cast<const double*>(elements)[2 * i] != 0 || static_cast<const double*>(elements)[2 * i + 1] != 0;
    case 15: return __bfloat162float(static_cast<const __nv_bfloat16*>(elements)[i]) != 0;
    case 2:
    case 27: return static_cast<const uint16_t*>(elements)[i] != 0;
    case 3:
    case 28: return static_cast<const uint32_t*>(elements)[i] != 0;
    case 4:
    case 29: return static_cast<const uint64_t*>(elements)[i] != 0;
    default: return static_cast<const uint8_t*>(elements)[i] != 0;
  }
}

struct Sizes {
  int64_t of[16];
};

template <class T>
void gather(const void* elements, const int64_t* positions, int64_t count, int64_t length, void* values,
            cudaStream_t stream) {
  const T* from = static_cast<const T*>(elements);
  T* to = static_cast<T*>(values);
  const auto body = [=] __device__(int64_t i) { to[i] = from[i / length * length + positions[i]]; };
  for_each_kernel<<<blocks_for(count), kThreads, 0, stream>>>(count, body);
}

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
    const float* bias = p.bias ? p.bias + batch * p.bias_strides[0] + head * p.bias_strides[1] + query * p.bias_strides[2]
                               : nullptr;
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
    const float base = most == -INFINITY ? 0.0f : most;  // a row that sees nothing
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

void launch_gather(const void* elements, int itemsize, const int64_t* positions, int64_t count, int64_t length,
                   void* values, cudaStream_t stream) {
  switch (itemsize) {
    case 1: return gather<uint8_t>(elements, positions, count, length, values, stream);
    case 2: return gather<uint16_t>(elements, positions, count, length, values, stream);
    case 4: return gather<uint32_t>(elements, positions, count, length, values, stream);
    case 16: return gather<uint4>(elements, positions, count, length, values, stream);
    default: return gather<uint64_t>(elements, positions, count, length, values, stream);
  }
}

cudaError_t select_nonzero(void* scratch, size_t& scratch_bytes, const uint8_t* flags, int64_t count, int64_t* selected,
                           int64_t* selected_count, cudaStream_t stream) {
  return cub::DeviceSelect::Flagged(scratch, scratch_bytes, thrust::counting_iterator<int64_t>(0), flags, selected,
                                    selected_count, count, stream);
}

void launch_flags(const void* elements, int dtype, int64_t count, uint8_t* flags, cudaStream_t stream) {
  const auto body = [=] __device__(int64_t i) { flags[i] = is_nonzero(elements, dtype, i); };
  for_each_kernel<<<blocks_for(count), kThreads, 0, stream>>>(count, body);
}

void launch_coordinates(const int64_t* selected, int64_t count, int rank, const int64_t* sizes, int64_t* coordinates,
                        cudaStream_t stream) {
  Sizes s{};
  for (int d = 0; d < rank; ++d) s.of[d] = sizes[d];
  const auto body = [=] __device__(int64_t i) {
    int64_t rest = selected[i];
    for (int d = rank - 1; d >= 0; --d) {
      coordinates[d * count + i] = rest % s.of[d];
      rest /= s.of[d];
    }
  };
  for_each_kernel<<<blocks_for(count), kThreads, 0, stream>>>(count, body);
}

void launch_softmax(const SoftmaxRows& rows, float* scores, float* logsumexp, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(rows.rows < (1 << 20) ? rows.rows : 1 << 20);
  softmax_kernel<<<blocks, kThreads, 0, stream>>>(rows, scores, logsumexp);
}

}  // namespace sconce::cuda
