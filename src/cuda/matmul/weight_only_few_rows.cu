#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/warp_mma.cuh"
#include "src/cuda/device_code/warp_sum.cuh"
#include "src/cuda/matmul/int4_weights.cuh"
#include "src/cuda/matmul/per_line.cuh"
#include "src/cuda/matmul/weight_only_few_rows.h"

namespace sconce::cuda {
namespace {

constexpr int kWarps = 8, kThreads = kWarps * 32;

// A block computes eight columns of the result, whose weights are adjacent; its warps split k. A word holds a lane's
// part of B for two matrix instructions: pairs 0 and 1 for one, 2 and 3 for the next.
template <int kWords>
__global__ void __launch_bounds__(kThreads) int4_kernel(FewRowsInt4 c) {
  __shared__ float parts[kWarps][kMaxFewRowsInt4 * 8];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4, rows = c.rows;
  const int shift = __ffsll(c.group) - 1;
  const int64_t tiles = c.k / (32 * kWords), first_column = static_cast<int64_t>(blockIdx.x) * 8;
  const auto* __restrict__ x = static_cast<const __nv_bfloat16*>(c.x) + 2 * t;
  const auto* __restrict__ scales = static_cast<const __nv_bfloat162*>(c.scales_and_zeros) + first_column + g;
  const auto* __restrict__ words =
      reinterpret_cast<const Pack<uint32_t, kWords>*>(c.packed) + blockIdx.x * tiles * 32 + lane;
  const auto pair_of = [&](int row, int64_t at) {
    return row < rows ? *reinterpret_cast<const uint32_t*>(x + row * c.x_stride + at) : 0u;
  };
  float sums[4] = {};
#pragma unroll 4
  for (int64_t tile = warp; tile < tiles; tile += kWarps) {
    const Pack<uint32_t, kWords> pack = words[tile * 32];
#pragma unroll
    for (int word = 0; word < kWords; ++word) {
      const int64_t first = (tile * kWords + word) * 32;
      const Int4Scale by(scales[(first >> shift) * c.n]);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int64_t at = first + half * 16;
        const uint32_t a[4] = {pair_of(g, at), pair_of(g + 8, at), pair_of(g, at + 8), pair_of(g + 8, at + 8)};
        const __nv_bfloat162 upper = int4_pair(pack.at[word], half * 2, by),
                             lower = int4_pair(pack.at[word], half * 2 + 1, by);
        multiply(sums, a, *reinterpret_cast<const uint32_t*>(&upper), *reinterpret_cast<const uint32_t*>(&lower),
                 __nv_bfloat16());
      }
    }
  }
  for (int i = 0; i < 4; ++i) parts[warp][(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sums[i];
  __syncthreads();
  const int at = threadIdx.x;
  if (at >= rows * 8) return;
  float sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += parts[w][at];
  static_cast<__nv_bfloat16*>(c.out)[at / 8 * c.n + first_column + at % 8] = __float2bfloat16_rn(sum);
}

// One warp per row of the weights.
template <class T, int kRows>
__global__ void __launch_bounds__(kThreads) int8_kernel(FewRowsInt8 c) {
  constexpr int kAtOnce = 16;
  const int lane = threadIdx.x % 32;
  const int64_t n = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (n >= c.n) return;
  const T* x = static_cast<const T*>(c.x);
  float sums[kRows] = {};
  for (int64_t k = lane * kAtOnce; k < c.k; k += 32 * kAtOnce) {
    const auto weight = *reinterpret_cast<const Pack<int8_t, kAtOnce>*>(c.weight + n * c.k + k);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (r >= c.rows) break;
      constexpr int kPart = 16 / static_cast<int>(sizeof(T));
#pragma unroll
      for (int part = 0; part < kAtOnce; part += kPart) {
        const auto values = *reinterpret_cast<const Pack<T, kPart>*>(x + r * c.k + k + part);
#pragma unroll
        for (int i = 0; i < kPart; ++i) sums[r] += widened(values.at[i]) * static_cast<float>(weight.at[part + i]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    sums[r] = warp_sum(sums[r]);
    if (lane == 0 && r < c.rows) static_cast<T*>(c.out)[r * c.n + n] = narrowed<T>(sums[r] * value_of(c.scales, n, 1));
  }
}

template <class T>
cudaError_t int8_as(const FewRowsInt8& c, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((c.n + kWarps - 1) / kWarps);
  if (c.rows == 1)
    int8_kernel<T, 1><<<blocks, kThreads, 0, stream>>>(c);
  else
    int8_kernel<T, static_cast<int>(kMaxFewRowsInt8)><<<blocks, kThreads, 0, stream>>>(c);
  return cudaGetLastError();
}

}  // namespace

void launch_few_rows_int4(const FewRowsInt4& call, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(call.n / 8);
  switch (call.inner) {
    case 2:
      int4_kernel<1><<<blocks, kThreads, 0, stream>>>(call);
      break;
    case 4:
      int4_kernel<2><<<blocks, kThreads, 0, stream>>>(call);
      break;
    default:
      int4_kernel<4><<<blocks, kThreads, 0, stream>>>(call);
  }
}

cudaError_t launch_few_rows_int8(const FewRowsInt8& call, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(call.dtype, SCONCE_FLOAT_CASES(int8_as, call, stream));
}

}  // namespace sconce::cuda
