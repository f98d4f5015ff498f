#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/warp_sum.cuh"
#include "src/cuda/normalisation/rms_norm_kernels.h"

namespace sconce::cuda {
namespace {

constexpr int kThreads = 256;

// One block per row or, with kShort, one warp.
template <class T, int kAtOnce, bool kShort>
__global__ void __launch_bounds__(kThreads) rms_norm_kernel(RmsNorm n) {
  using C = Compute<T>;
  constexpr int kWarps = kThreads / 32, kRows = kShort ? kWarps : 1, kStep = (kShort ? 32 : kThreads) * kAtOnce;
  __shared__ C shared[kWarps];
  const int first = static_cast<int>(kShort ? threadIdx.x % 32 : threadIdx.x) * kAtOnce;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kRows + (kShort ? threadIdx.x / 32 : 0); row < n.rows;
       row += static_cast<int64_t>(gridDim.x) * kRows) {
    const T* x = static_cast<const T*>(n.x) + row * n.length;
    C sum = 0;
    for (int64_t i = first; i < n.length; i += kStep) {
      const auto values = *reinterpret_cast<const Pack<T, kAtOnce>*>(x + i);
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const C value = widened(values.at[k]);
        sum += value * value;
      }
    }
    sum = warp_sum(sum);
    if (!kShort) {
      if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
      __syncthreads();
      sum = 0;
      for (int i = 0; i < kWarps; ++i) sum += shared[i];
    }
    const C root = rsqrt(sum / static_cast<C>(n.length) + static_cast<C>(n.epsilon));
    if (first == 0) static_cast<C*>(n.roots)[row] = root;
    const C* weight = static_cast<const C*>(n.weight);
    T* y = static_cast<T*>(n.y) + row * n.length;
    for (int64_t i = first; i < n.length; i += kStep) {
      const auto values = *reinterpret_cast<const Pack<T, kAtOnce>*>(x + i);
      Pack<C, kAtOnce> factors;
      if (weight) factors = *reinterpret_cast<const Pack<C, kAtOnce>*>(weight + i);
      Pack<T, kAtOnce> result;
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const C value = widened(values.at[k]) * root;
        result.at[k] = narrowed<T>(weight ? value * factors.at[k] : value);
      }
      *reinterpret_cast<Pack<T, kAtOnce>*>(y + i) = result;
    }
    if (!kShort) __syncthreads();
  }
}
template <class T, int kAtOnce>
void rms_norm_by(const RmsNorm& norm, cudaStream_t stream) {
  constexpr int64_t kMaxBlocks = 1 << 20, kShortest = 1024, kRows = kThreads / 32;
  const bool brief = norm.length <= kShortest;
  const int64_t blocks = brief ? (norm.rows + kRows - 1) / kRows : norm.rows;
  const auto grid = static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks);
  if (brief)
    rms_norm_kernel<T, kAtOnce, true><<<grid, kThreads, 0, stream>>>(norm);
  else
    rms_norm_kernel<T, kAtOnce, false><<<grid, kThreads, 0, stream>>>(norm);
}
template <class T>
cudaError_t rms_norm_as(const RmsNorm& norm, cudaStream_t stream) {
  constexpr int kAtOnce = 16 / static_cast<int>(sizeof(T));
  const auto aligned = [](const void* data, size_t bytes) { return reinterpret_cast<uintptr_t>(data) % bytes == 0; };
  if (norm.rows == 0) return cudaSuccess;
  if (norm.length % kAtOnce == 0 && aligned(norm.x, 16) && aligned(norm.y, 16) &&
      aligned(norm.weight, kAtOnce * sizeof(Compute<T>)))
    rms_norm_by<T, kAtOnce>(norm, stream);
  else
    rms_norm_by<T, 1>(norm, stream);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_rms_norm(const RmsNorm& norm, int dtype, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_FLOATING_CASES(rms_norm_as, norm, stream));
}

}  // namespace sconce::cuda
