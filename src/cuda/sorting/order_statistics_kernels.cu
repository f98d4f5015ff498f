#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/sorting/order_statistics_kernels.h"

namespace sconce::cuda {
namespace {

template <class T>
cudaError_t middle(const void* source, int64_t rows, int64_t length, bool skip_nans, void* target,
                   cudaStream_t stream) {
  const T* sorted = static_cast<const T*>(source);
  T* values = static_cast<T*>(target);
  grid_loop(rows, stream, [=] __device__(int64_t row) {
    const T* at = sorted + row * length;
    int64_t numbers = length;
    if (is_nan(widened(at[length - 1]))) {
      int64_t low = 0, high = length - 1;  // the first NaN
      while (low < high) {
        const int64_t half = low + (high - low) / 2;
        if (is_nan(widened(at[half])))
          high = half;
        else
          low = half + 1;
      }
      numbers = low;
    }
    const bool nan = numbers == 0 || (numbers < length && !skip_nans);
    values[row] = at[nan ? length - 1 : (numbers - 1) / 2];
  });
  return cudaGetLastError();
}

// One block per row. A run is measured at its end, from the latest start up to there.
constexpr int kModeThreads = 256;
struct Run {
  int64_t length, end;
  // The longer run; of equal ones the first.
  __device__ static Run better(const Run& a, const Run& b) {
    return b.length > a.length || (b.length == a.length && b.end < a.end) ? b : a;
  }
};
struct BetterRun {
  __device__ Run operator()(const Run& a, const Run& b) const { return Run::better(a, b); }
};
struct Later {
  __device__ int64_t operator()(int64_t a, int64_t b) const { return a > b ? a : b; }
};
template <class T>
__global__ void __launch_bounds__(kModeThreads)
    most_frequent_kernel(const T* sorted, const int64_t* positions, int64_t rows, int64_t length, T* values,
                         int64_t* places) {
  using Scan = cub::BlockScan<int64_t, kModeThreads>;
  using Reduce = cub::BlockReduce<Run, kModeThreads>;
  __shared__ typename Scan::TempStorage scanning;
  __shared__ typename Reduce::TempStorage reducing;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* at = sorted + row * length;
    Run best{0, 0};
    int64_t begun = 0;  // the run that continues from the previous tile
    for (int64_t tile = 0; tile < length; tile += kModeThreads) {
      const int64_t i = tile + threadIdx.x;
      const bool there = i < length;
      const auto value = widened(at[there ? i : length - 1]);
      const bool starts = there && i > 0 && !(widened(at[i - 1]) == value);
      int64_t start = starts ? i : begun, latest;
      Scan(scanning).InclusiveScan(start, start, Later(), latest);
      begun = latest;
      const bool ends = there && (i + 1 == length || !(widened(at[i + 1]) == value));
      if (ends) best = Run::better(best, {i - start + 1, i});
      __syncthreads();
    }
    best = Reduce(reducing).Reduce(best, BetterRun());
    if (threadIdx.x == 0) {
      values[row] = at[best.end];
      places[row] = positions[row * length + best.end];
    }
    __syncthreads();
  }
}
template <class T>
cudaError_t most_frequent(const void* sorted, const int64_t* positions, int64_t rows, int64_t length, void* values,
                          int64_t* places, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(rows < 1 << 20 ? rows : 1 << 20);
  most_frequent_kernel<<<blocks, kModeThreads, 0, stream>>>(static_cast<const T*>(sorted), positions, rows, length,
                                                            static_cast<T*>(values), places);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_middle(int dtype, const void* sorted, int64_t rows, int64_t length, bool skip_nans, void* values,
                          cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_REAL_CASES(middle, sorted, rows, length, skip_nans, values, stream));
}

cudaError_t launch_most_frequent(int dtype, const void* sorted, const int64_t* positions, int64_t rows, int64_t length,
                                 void* values, int64_t* at, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype,
                         SCONCE_ORDERED_CASES(most_frequent, sorted, positions, rows, length, values, at, stream));
}

}  // namespace sconce::cuda
