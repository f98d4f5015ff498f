#include "src/cuda/linalg/small_matrices.h"
#include "src/cuda/linalg/small_numbers.cuh"

namespace sconce::cuda {
namespace {

constexpr int kWarps = 8, kRowsPerLane = kMostSmallSize / 32;
static_assert(kRowsPerLane * 32 == kMostSmallSize);

// The row of the largest element of a column, the first if there are several, as LAPACK's search finds it: a NaN is
// taken only if it comes first. The same for all lanes.
template <class T>
__device__ int pivot_row(const T* column, int first, int rows, int lane) {
  using R = Real<T>;
  R most = -1;
  int row = rows;
  for (int i = first + lane; i < rows; i += 32) {
    const R size = rough_size(column[i]);
    if (i == first && size != size) {
      most = static_cast<R>(INFINITY);
      row = i;
    } else if (size > most) {
      most = size;
      row = i;
    }
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    const R other = __shfl_xor_sync(0xFFFFFFFFu, most, offset);
    const int at = __shfl_xor_sync(0xFFFFFFFFu, row, offset);
    if (other > most || (other == most && at < row)) {
      most = other;
      row = at;
    }
  }
  return row;
}

// Each warp has every kWarps-th column. All find the pivot and the multipliers of a step themselves, so that a step has
// one barrier: before it, only later columns are written, and after it, only columns that no warp reads any more.
template <class T>
__global__ void __launch_bounds__(kWarps * 32)
    small_lu_kernel(T* matrices, int rows, int columns, int32_t* pivots, int32_t* info) {
  extern __shared__ __align__(16) unsigned char memory[];
  T* const a = reinterpret_cast<T*>(memory);
  T* const data = matrices + static_cast<int64_t>(blockIdx.x) * rows * columns;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, steps = min(rows, columns);
  for (int i = threadIdx.x; i < rows * columns; i += kWarps * 32) a[i] = data[i];
  __syncthreads();
  int failed = 0;
  for (int k = 0; k < steps; ++k) {
    const T* const column = a + k * rows;
    const int p = pivots ? pivot_row(column, k, rows, lane) : k;
    const T pivot = column[p], head = column[k];
    const bool zero = pivot == T(0);
    if (zero && failed == 0) failed = k + 1;
    T multipliers[kRowsPerLane];
#pragma unroll
    for (int r = 0; r < kRowsPerLane; ++r) {
      const int i = lane + 32 * r;
      multipliers[r] = T(0);
      if (i <= k || i >= rows) continue;
      const T value = i == p ? head : column[i];
      multipliers[r] = zero ? value : value / pivot;
    }
    for (int j = warp; j < columns; j += kWarps) {
      if (j <= k) continue;
      T* const its = a + j * rows;
      const T above = its[p], before = its[k];
      __syncwarp();
#pragma unroll
      for (int r = 0; r < kRowsPerLane; ++r) {
        const int i = lane + 32 * r;
        if (i > k && i < rows) its[i] = (i == p ? before : its[i]) - multipliers[r] * above;
      }
      if (lane == 0) its[k] = above;
      __syncwarp();
    }
    __syncthreads();
    if (k % kWarps == warp) {
      T* const done = a + k * rows;
#pragma unroll
      for (int r = 0; r < kRowsPerLane; ++r) {
        const int i = lane + 32 * r;
        if (i > k && i < rows) done[i] = multipliers[r];
      }
      if (lane == 0) {
        done[k] = pivot;
        if (pivots) pivots[static_cast<int64_t>(blockIdx.x) * steps + k] = p + 1;
      }
    }
    if (const int j = warp + kWarps * lane; p != k && j < k) {
      const T kept = a[j * rows + k];
      a[j * rows + k] = a[j * rows + p];
      a[j * rows + p] = kept;
    }
    __syncwarp();
  }
  __syncthreads();
  for (int i = threadIdx.x; i < rows * columns; i += kWarps * 32) data[i] = a[i];
  if (threadIdx.x == 0) info[blockIdx.x] = failed;
}

}  // namespace

void launch_small_lu(void* matrices, int dtype, int64_t count, int rows, int columns, int32_t* pivots, int32_t* info,
                     cudaStream_t stream) {
  by_number(dtype, [&](auto sample) {
    using T = decltype(sample);
    const size_t bytes = sizeof(T) * static_cast<size_t>(rows) * static_cast<size_t>(columns);
    small_lu_kernel<T><<<static_cast<unsigned>(count), kWarps * 32, bytes, stream>>>(static_cast<T*>(matrices), rows,
                                                                                     columns, pivots, info);
  });
}

}  // namespace sconce::cuda
