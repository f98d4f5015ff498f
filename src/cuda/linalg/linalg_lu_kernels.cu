#include "src/cuda/linalg/small_matrices.h"
#include "src/cuda/linalg/small_numbers.cuh"

namespace sconce::cuda {
namespace {

constexpr int kWarps = 8, kRowsPerLane = kMaxSmallSize / 32;
static_assert(kRowsPerLane * 32 == kMaxSmallSize);

// The row of the largest element of a column, the first if there are several, as LAPACK's search finds it: a NaN is
// taken only if it comes first. The same for all lanes.
template <class T>
__device__ int pivot_row(const T* column, int first, int rows, bool by_length, int lane) {
  using R = Real<T>;
  R most = -1;
  int row = rows;
  for (int i = first + lane; i < rows; i += 32) {
    const R size = by_length ? length_of(column[i]) : rough_size(column[i]);
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
__global__ void __launch_bounds__(kWarps * 32) small_lu_kernel(SmallLu lu) {
  extern __shared__ __align__(16) unsigned char memory[];
  T* const a = reinterpret_cast<T*>(memory);
  const int rows = lu.rows, columns = lu.columns;
  int32_t* const pivots = lu.pivots;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * rows * columns;
  const T* const from = static_cast<const T*>(lu.from) + first;
  T* const data = static_cast<T*>(lu.to) + first;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, steps = min(rows, columns);
  for (int i = threadIdx.x; i < rows * columns; i += kWarps * 32)
    a[lu.from_rows ? i % columns * rows + i / columns : i] = from[i];
  __syncthreads();
  int failed = 0;
  for (int k = 0; k < steps; ++k) {
    const T* const column = a + k * rows;
    const int p = pivots ? pivot_row(column, k, rows, lu.by_length, lane) : k;
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
  if (threadIdx.x == 0) lu.info[blockIdx.x] = failed;
}

// The first of the largest among the lanes' sizes, by `place`. Sizes are not negative; -1 takes no part.
__device__ inline int first_largest(float size, int place) {
  const int bits = size < 0 ? -1 : __float_as_int(size);
  const int most = __reduce_max_sync(0xFFFFFFFFu, bits);
  return __reduce_min_sync(0xFFFFFFFFu, bits == most && bits >= 0 ? place : 1 << 20);
}
__device__ inline int first_largest(double size, int place) {
  const int64_t bits = size < 0 ? -1 : __double_as_longlong(size);
  const int high = __reduce_max_sync(0xFFFFFFFFu, static_cast<int>(bits >> 32));
  const bool in = bits >= 0 && static_cast<int>(bits >> 32) == high;
  const unsigned low = __reduce_max_sync(0xFFFFFFFFu, in ? static_cast<unsigned>(bits) : 0u);
  return __reduce_min_sync(0xFFFFFFFFu, in && static_cast<unsigned>(bits) == low ? place : 1 << 20);
}

template <class R>
__device__ R from_lane(R v, int lane) {
  return __shfl_sync(0xFFFFFFFFu, v, lane);
}
template <class R>
__device__ thrust::complex<R> from_lane(const thrust::complex<R>& v, int lane) {
  return {__shfl_sync(0xFFFFFFFFu, v.real(), lane), __shfl_sync(0xFFFFFFFFu, v.imag(), lane)};
}

// One warp a matrix of at most kSide columns and 32 rows: a lane holds a row. Rows stay where they are, and `place`
// says where exchanges have taken them.
template <class T, int kSide>
__global__ void __launch_bounds__(32) lu_in_lanes_kernel(SmallLu lu) {
  const int rows = lu.rows, columns = lu.columns, lane = threadIdx.x, steps = min(rows, columns);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * rows * columns;
  const T* const from = static_cast<const T*>(lu.from) + first;
  T* const to = static_cast<T*>(lu.to) + first;
  const int row_step = lu.from_rows ? columns : 1, column_step = lu.from_rows ? 1 : rows;
  T a[kSide];
#pragma unroll
  for (int j = 0; j < kSide; ++j) a[j] = lane < rows && j < columns ? from[lane * row_step + j * column_step] : T(0);
  int place = lane, failed = 0;
#pragma unroll
  for (int k = 0; k < kSide; ++k) {
    if (k >= steps) break;
    int taken = k;
    if (lu.pivots) {
      // A NaN is taken only if it comes first.
      using R = Real<T>;
      const R size = lane >= rows || place < k ? R(-1) : lu.by_length ? length_of(a[k]) : rough_size(a[k]);
      const R known = size == size ? size : place == k ? static_cast<R>(INFINITY) : R(-1);
      taken = first_largest(known, place);
    }
    const int owner = __ffs(__ballot_sync(0xFFFFFFFFu, place == taken)) - 1;
    if (lane == 0 && lu.pivots) lu.pivots[static_cast<int64_t>(blockIdx.x) * steps + k] = taken + 1;
    place = place == taken ? k : place == k ? taken : place;
    const T pivot = from_lane(a[k], owner);
    if (pivot == T(0)) {
      if (failed == 0) failed = k + 1;
    } else if (place > k) {
      a[k] = a[k] / pivot;
    }
    const T multiplier = place > k ? a[k] : T(0);
#pragma unroll
    for (int j = k + 1; j < kSide; ++j) {
      const T above = from_lane(a[j], owner);
      if (place > k) a[j] -= multiplier * above;
    }
  }
#pragma unroll
  for (int j = 0; j < kSide; ++j)
    if (lane < rows && j < columns) to[place + j * rows] = a[j];
  if (lane == 0) lu.info[blockIdx.x] = failed;
}

template <class T>
bool lu_in_lanes(const SmallLu& lu, cudaStream_t stream) {
  if (lu.rows > 32 || lu.columns > 32) return false;
  const auto count = static_cast<unsigned>(lu.count);
  if (lu.columns <= 4)
    lu_in_lanes_kernel<T, 4><<<count, 32, 0, stream>>>(lu);
  else if (lu.columns <= 16)
    lu_in_lanes_kernel<T, 16><<<count, 32, 0, stream>>>(lu);
  else
    lu_in_lanes_kernel<T, 32><<<count, 32, 0, stream>>>(lu);
  return true;
}

}  // namespace

void launch_small_lu(const SmallLu& lu, cudaStream_t stream) {
  by_number(lu.dtype, [&](auto sample) {
    using T = decltype(sample);
    if (lu_in_lanes<T>(lu, stream)) return;
    const size_t bytes = sizeof(T) * static_cast<size_t>(lu.rows) * static_cast<size_t>(lu.columns);
    small_lu_kernel<T><<<static_cast<unsigned>(lu.count), kWarps * 32, bytes, stream>>>(lu);
  });
}

}  // namespace sconce::cuda
