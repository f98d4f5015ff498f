#include "src/cuda/device_types.cuh"
#include "src/cuda/few_rows.h"
#include "src/cuda/per_line.cuh"

namespace sconce::cuda {
namespace {

constexpr int kWarps = 8, kThreads = kWarps * 32;

// A block has eight rows of the weights; its warps share their columns. A lane has a part of one row: kWords words of
// eight numbers.
template <int kRows, int kWords>
__global__ void __launch_bounds__(kThreads) int4_kernel(FewRowsInt4 c) {
  __shared__ float shared[kWarps][kRows][8];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t tiles = c.k / (32 * kWords), row = static_cast<int64_t>(blockIdx.x) * 8 + lane / 4;
  const auto* x = static_cast<const __nv_bfloat16*>(c.x);
  const auto* scales = static_cast<const __nv_bfloat162*>(c.scales_and_zeros);
  const auto* words = reinterpret_cast<const Pack<uint32_t, kWords>*>(c.packed);
  const __nv_bfloat162 offset = __float2bfloat162_rn(136);  // 128 + 8
  float sums[kRows] = {};
  for (int64_t tile = warp; tile < tiles; tile += kWarps) {
    const Pack<uint32_t, kWords> pack = words[(static_cast<int64_t>(blockIdx.x) * tiles + tile) * 32 + lane];
#pragma unroll
    for (int pair = 0; pair < kWords; ++pair) {
      const int64_t first = (tile * kWords + pair) * 32 + lane % 4 * 2;
      const __nv_bfloat162 own = scales[first / c.group * c.n + row];
      const __nv_bfloat162 scale = __bfloat162bfloat162(__low2bfloat16(own)),
                           zero = __bfloat162bfloat162(__high2bfloat16(own));
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        // Two numbers q as 128 + q: their bits follow those of 128.
        const uint32_t bits = (pack.at[pair] >> 4 * j & 0x000F000Fu) | 0x43004300u;
        __nv_bfloat162 raw;
        memcpy(&raw, &bits, 4);
        const float2 weight = __bfloat1622float2(__hfma2(__hsub2(raw, offset), scale, zero));
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          if (r >= c.rows) break;
          const float2 value =
              __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(x + r * c.x_stride + first + 8 * j));
          sums[r] += value.x * weight.x + value.y * weight.y;
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    sums[r] += __shfl_xor_sync(0xFFFFFFFFu, sums[r], 1);
    sums[r] += __shfl_xor_sync(0xFFFFFFFFu, sums[r], 2);
    if (lane % 4 == 0) shared[warp][r][lane / 4] = sums[r];
  }
  __syncthreads();
  const int r = threadIdx.x / 8, at = threadIdx.x % 8;
  if (r >= kRows || r >= c.rows) return;
  float sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += shared[w][r][at];
  static_cast<__nv_bfloat16*>(c.out)[r * c.n + static_cast<int64_t>(blockIdx.x) * 8 + at] = __float2bfloat16_rn(sum);
}

template <int kRows>
void int4_by_words(const FewRowsInt4& c, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(c.n / 8);
  switch (c.inner) {
    case 2:
      int4_kernel<kRows, 1><<<blocks, kThreads, 0, stream>>>(c);
      break;
    case 4:
      int4_kernel<kRows, 2><<<blocks, kThreads, 0, stream>>>(c);
      break;
    default:
      int4_kernel<kRows, 4><<<blocks, kThreads, 0, stream>>>(c);
  }
}

// A warp has a row of the weights.
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
    for (int offset = 16; offset > 0; offset /= 2) sums[r] += __shfl_xor_sync(0xFFFFFFFFu, sums[r], offset);
    if (lane == 0 && r < c.rows) static_cast<T*>(c.out)[r * c.n + n] = narrowed<T>(sums[r] * value_of(c.scales, n, 1));
  }
}

template <class T>
cudaError_t int8_as(const FewRowsInt8& c, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((c.n + kWarps - 1) / kWarps);
  if (c.rows == 1)
    int8_kernel<T, 1><<<blocks, kThreads, 0, stream>>>(c);
  else
    int8_kernel<T, static_cast<int>(kMostFewRows)><<<blocks, kThreads, 0, stream>>>(c);
  return cudaGetLastError();
}

}  // namespace

void launch_few_rows_int4(const FewRowsInt4& call, cudaStream_t stream) {
  if (call.rows == 1)
    int4_by_words<1>(call, stream);
  else
    int4_by_words<static_cast<int>(kMostFewRows)>(call, stream);
}

cudaError_t launch_few_rows_int8(const FewRowsInt8& call, cudaStream_t stream) {
  switch (call.dtype) {
    SCONCE_DTYPE_CASE(5, __half, int8_as, call, stream)
    SCONCE_DTYPE_CASE(6, float, int8_as, call, stream)
    SCONCE_DTYPE_CASE(15, __nv_bfloat16, int8_as, call, stream)
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace sconce::cuda
