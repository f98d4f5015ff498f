// Two kernels, which ask for weights before they wait for the kernel that makes x.
#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/early_start.cuh"
#include "src/cuda/device_code/warp_mma.cuh"
#include "src/cuda/device_code/warp_sum.cuh"
#include "src/cuda/matmul/matmul_few_rows_kernels.h"

namespace sconce::cuda {
namespace {

// Elements of 16 bytes.
template <class T>
inline constexpr int kPart = 16 / static_cast<int>(sizeof(T));
template <class T>
using Part = Pack<T, kPart<T>>;

template <class T>
__device__ Part<T> load_part(const T* from) {
  return *reinterpret_cast<const Part<T>*>(from);
}

// Of weights, which are read once. Zeros if not `read`.
template <class T>
__device__ Part<T> load_weights(const T* from, bool read) {
  uint4 words{};
  if (read)
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "l"(from));
  return *reinterpret_cast<const Part<T>*>(&words);
}

template <class T>
__device__ void store(const FewRows& c, int64_t row, int64_t column, float sum) {
  sum *= c.alpha;
  if (c.bias) sum += widened(static_cast<const T*>(c.bias)[column]);
  static_cast<T*>(c.out)[row * c.out_stride + column] = narrowed<T>(sum);
}

// The warps of a block share kColumns columns, and each takes a part of k, kAhead loads of 16 bytes of each column at
// once.
template <class T, int kRows, int kColumns, int kWarps, int kAhead>
__global__ void __launch_bounds__(kWarps * 32) lines_kernel(FewRows c) {
  constexpr int kStep = kWarps * 32 * kPart<T>;
  __shared__ float parts[kWarps][kColumns * kRows];
  let_next_start();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kColumns;
  // Where there is no such column, the last is read again.
  const T* lines[kColumns];
#pragma unroll
  for (int i = 0; i < kColumns; ++i)
    lines[i] = static_cast<const T*>(c.weight) + min(first + i, c.n - 1) * c.weight_stride;
  const T* x = static_cast<const T*>(c.x);
  float sums[kColumns][kRows] = {};
  const int64_t begin = static_cast<int64_t>(threadIdx.x) * kPart<T>;
  for (int64_t k = begin; k < c.k || k == begin; k += kAhead * kStep) {
    Part<T> weights[kColumns][kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u)
#pragma unroll
      for (int i = 0; i < kColumns; ++i) weights[i][u] = load_weights(lines[i] + k + u * kStep, k + u * kStep < c.k);
    if (k == begin) wait_for_previous();
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int64_t at = k + u * kStep;
      if (at >= c.k) break;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (r >= c.rows) break;
        const Part<T> values = load_part(x + r * c.x_stride + at);
#pragma unroll
        for (int e = 0; e < kPart<T>; ++e)
#pragma unroll
          for (int i = 0; i < kColumns; ++i) sums[i][r] += widened(values.at[e]) * widened(weights[i][u].at[e]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      const float sum = warp_sum(sums[i][r]);
      if (lane == i) parts[warp][r * kColumns + i] = sum;
    }
  __syncthreads();
  if (warp != 0 || lane >= kColumns * c.rows || first + lane % kColumns >= c.n) return;
  float sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += parts[w][lane];
  store<T>(c, lane / kColumns, first + lane % kColumns, sum);
}

// By matrix instructions, for half types: a block computes 16 columns, its warps split k. Instructions take the
// elements of k in another order than memory has, the same one for weights and x, so that a lane loads 16 bytes.
template <class T, int kSplit>
__global__ void __launch_bounds__(kSplit * 32) tiles_kernel(FewRows c) {
  constexpr int kStep = kSplit * 32, kAhead = 4;
  __shared__ float parts[kSplit][16 * kMaxFewRows];
  let_next_start();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * 16;
  const auto line = [&](int64_t column) {
    return reinterpret_cast<const uint32_t*>(static_cast<const T*>(c.weight) + min(column, c.n - 1) * c.weight_stride);
  };
  const uint32_t *upper = line(first + g), *lower = line(first + g + 8);
  const uint32_t* x = reinterpret_cast<const uint32_t*>(static_cast<const T*>(c.x) + (g < c.rows ? g * c.x_stride : 0));
  float sums[4] = {};
  const int64_t begin = warp * 32;
  for (int64_t k = begin; k < c.k || k == begin; k += kAhead * kStep) {
    Part<uint32_t> a[kAhead], b[kAhead], v[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int64_t at = k + u * kStep + t * 8;
      a[u] = load_weights(upper + at / 2, at < c.k);
      b[u] = load_weights(lower + at / 2, at < c.k);
    }
    if (k == begin) wait_for_previous();
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int64_t at = k + u * kStep + t * 8;
      v[u] = {};
      if (g < c.rows && at < c.k) v[u] = load_part(x + at / 2);
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u)
      for (int i = 0; i < 4; i += 2)
        multiply(sums, {a[u].at[i], b[u].at[i], a[u].at[i + 1], b[u].at[i + 1]}, v[u].at[i], v[u].at[i + 1], T());
  }
  for (int i = 0; i < 4; ++i) parts[warp][(2 * t + i % 2) * 16 + g + i / 2 * 8] = sums[i];
  __syncthreads();
  const int64_t row = threadIdx.x / 16, column = first + threadIdx.x % 16;
  if (row >= c.rows || column >= c.n) return;
  float sum = 0;
  for (int w = 0; w < kSplit; ++w) sum += parts[w][threadIdx.x];
  store<T>(c, row, column, sum);
}

cudaError_t launch(void (*kernel)(FewRows), int64_t columns_of_block, int warps, const FewRows& c,
                   cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((c.n + columns_of_block - 1) / columns_of_block);
  return launch_early(c.constant_weight, kernel, blocks, static_cast<unsigned>(warps * 32), c, stream);
}

template <class T, int kRows, int kColumns, int kWarps, int kAhead>
cudaError_t launch_lines(const FewRows& c, cudaStream_t stream) {
  static_assert(kColumns * kRows <= 32);
  return launch(lines_kernel<T, kRows, kColumns, kWarps, kAhead>, kColumns, kWarps, c, stream);
}

// One row: the forms that were fastest for seven shapes from 256 x 2048 to 32000 x 2048 on an H200, of 1 to 8 columns,
// 1 to 16 warps and 1 to 8 loads ahead. Short columns fit into one round of loads; if there are more blocks than run at
// once, blocks with fewer registers are better. Long columns want more warps.
template <class T>
cudaError_t launch_one_row(const FewRows& c, int multiprocessors, cudaStream_t stream) {
  constexpr int64_t kShortBytes = 4096, kColumns = 4, kBlocksAtOnce = 6;
  if (c.k * static_cast<int64_t>(sizeof(T)) > kShortBytes) return launch_lines<T, 1, 2, 8, 1>(c, stream);
  return c.n <= kColumns * kBlocksAtOnce * multiprocessors ? launch_lines<T, 1, kColumns, 4, 2>(c, stream)
                                                           : launch_lines<T, 1, kColumns, 4, 1>(c, stream);
}

template <class T>
cudaError_t launch_as(const FewRows& c, int multiprocessors, cudaStream_t stream) {
  if (c.rows == 1) return launch_one_row<T>(c, multiprocessors, stream);
  if constexpr (sizeof(T) == 2) {
    const bool few_blocks = c.n < int64_t{16} * 2 * multiprocessors;
    return few_blocks ? launch(tiles_kernel<T, 16>, 16, 16, c, stream) : launch(tiles_kernel<T, 8>, 16, 8, c, stream);
  } else {
    constexpr int kHalf = static_cast<int>(kMaxFewRows) / 2;
    return c.rows <= kHalf ? launch_lines<T, kHalf, 2, 4, 2>(c, stream)
                           : launch_lines<T, 2 * kHalf, 2, 4, 2>(c, stream);
  }
}

}  // namespace

cudaError_t launch_few_rows(const FewRows& call, int multiprocessors, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(call.dtype, SCONCE_FLOAT_CASES(launch_as, call, multiprocessors, stream));
}

}  // namespace sconce::cuda
