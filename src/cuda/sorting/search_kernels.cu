#include <cmath>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/element_sizes.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/sorting/search_kernels.h"

namespace sconce::cuda {
namespace {

template <class T>
void search(const SearchCall& c, cudaStream_t stream) {
  const T* all = static_cast<const T*>(c.sequence);
  const T* values = static_cast<const T*>(c.values);
  grid_loop(c.count, stream, [=] __device__(int64_t i) {
    const int64_t begin = c.one_row ? 0 : i / c.each * c.n;
    const T value = values[i];
    int64_t low = 0, high = c.n;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      int64_t at = middle;
      if (c.sorter) {
        at = c.sorter[begin + middle];
        if (at < 0 || at >= c.n) {
          *c.noted = c.note;
          at = 0;
        }
      }
      const T there = all[begin + at];
      const bool behind = c.right ? !(there > value) : !(there >= value);
      if (behind)
        low = middle + 1;
      else
        high = middle;
    }
    if (c.narrow)
      static_cast<int32_t*>(c.out)[i] = static_cast<int32_t>(low);
    else
      static_cast<int64_t*>(c.out)[i] = low;
  });
}

template <class T>
void repeat(const int64_t* sums, int64_t n, int64_t count, void* to, int* noted, int note, cudaStream_t stream) {
  T* out = static_cast<T*>(to);
  grid_loop(count, stream, [=] __device__(int64_t i) {
    if (i == 0 && sums[n - 1] != count) *noted = note;
    int64_t low = 0, high = n - 1;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (sums[middle] > i)
        high = middle;
      else
        low = middle + 1;
    }
    out[i] = static_cast<T>(low);
  });
}

constexpr int kThreads = 512, kBlocks = 1024, kEach = 16;

unsigned blocks_of(int64_t count) {
  const int64_t blocks = (count + kThreads * kEach - 1) / (kThreads * kEach);
  return static_cast<unsigned>(blocks < kBlocks ? blocks : kBlocks);
}

// Atomically sets *at to choose(*at, v).
template <class F>
__device__ void join_at(double* at, double v, F choose) {
  auto* word = reinterpret_cast<unsigned long long*>(at);
  unsigned long long seen = *word;
  for (;;) {
    const double before = __longlong_as_double(static_cast<long long>(seen)), after = choose(before, v);
    if (before == after) return;
    const unsigned long long found =
        atomicCAS(word, seen, static_cast<unsigned long long>(__double_as_longlong(after)));
    if (found == seen) return;
    seen = found;
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) range_kernel(const T* in, int64_t count, double* range) {
  __shared__ double low[kThreads], high[kThreads];
  double least = INFINITY, most = -INFINITY;
#pragma unroll 4
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * kThreads) {
    const auto v = static_cast<double>(widened(in[i]));
    least = fmin(least, v);
    most = fmax(most, v);
  }
  low[threadIdx.x] = least;
  high[threadIdx.x] = most;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      low[threadIdx.x] = fmin(low[threadIdx.x], low[threadIdx.x + half]);
      high[threadIdx.x] = fmax(high[threadIdx.x], high[threadIdx.x + half]);
    }
  }
  if (threadIdx.x == 0) {
    join_at(range, low[0], [](double a, double b) { return fmin(a, b); });
    join_at(range + 1, high[0], [](double a, double b) { return fmax(a, b); });
  }
}
template <class T>
cudaError_t find_range(const void* in, int64_t count, double* range, cudaStream_t stream) {
  grid_loop(2, stream, [=] __device__(int64_t i) { range[i] = i == 0 ? INFINITY : -INFINITY; });
  range_kernel<T><<<blocks_of(count), kThreads, 0, stream>>>(static_cast<const T*>(in), count, range);
  return cudaGetLastError();
}

template <class T>
struct Bins {
  using C = Compute<T>;
  const double* range;
  int64_t bins;

  // The bin of an element; -1 if it is outside of all.
  __device__ int64_t of(T element) const {
    const bool one = range[0] == range[1];
    const C low = static_cast<C>(range[0]) - static_cast<C>(one), high = static_cast<C>(range[1]) + static_cast<C>(one);
    const C v = widened(element);
    if (!(v >= low && v <= high)) return -1;
    const auto bin = static_cast<int64_t>((v - low) * static_cast<C>(bins) / (high - low));
    return bin >= bins ? bins - 1 : bin;
  }
};
// With few bins, each block counts in shared memory first. With very few, each bin has `copies` counters (a power of 2)
// for neighbouring threads, to reduce contention.
constexpr int64_t kSharedBins = 8192;
constexpr int kCopies = 4;
template <class T>
__global__ void __launch_bounds__(kThreads)
    bins_kernel(const T* in, int64_t count, Bins<T> bins, int copies, unsigned long long* counts) {
  constexpr int kAhead = 4;  // loads in flight
  extern __shared__ unsigned own[];
  const int all = static_cast<int>(bins.bins) * copies;
  for (int b = threadIdx.x; b < all; b += kThreads) own[b] = 0;
  __syncthreads();
  unsigned* const mine = own + (threadIdx.x & (copies - 1));
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += kAhead * step) {
    T elements[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) elements[k] = in[i + k * step < count ? i + k * step : i];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const int64_t bin = i + k * step < count ? bins.of(elements[k]) : -1;
      if (bin >= 0) atomicAdd(mine + static_cast<int>(bin) * copies, 1u);
    }
  }
  __syncthreads();
  for (int b = threadIdx.x; b < bins.bins; b += kThreads) {
    unsigned long long sum = 0;
    for (int k = 0; k < copies; ++k) sum += own[b * copies + k];
    if (sum) atomicAdd(counts + b, sum);
  }
}

template <class T>
cudaError_t count_bins(const void* source, int64_t count, int64_t bins, const double* range, unsigned long long* counts,
                       cudaStream_t stream) {
  const T* in = static_cast<const T*>(source);
  const Bins<T> all{range, bins};
  // A block counts in 32 bits.
  if (bins <= kSharedBins && count / kBlocks < INT32_MAX) {
    const int copies = bins * kCopies <= kSharedBins ? kCopies : 1;
    const size_t bytes = static_cast<size_t>(bins) * static_cast<size_t>(copies) * 4;
    bins_kernel<T><<<blocks_of(count), kThreads, bytes, stream>>>(in, count, all, copies, counts);
    return cudaGetLastError();
  }
  grid_loop(count, stream, [=] __device__(int64_t i) {
    const int64_t bin = all.of(in[i]);
    if (bin >= 0) atomicAdd(counts + bin, 1ULL);
  });
  return cudaGetLastError();
}

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

template <class T>
cudaError_t find_starts(const void* sorted, int64_t count, bool* starts, cudaStream_t stream) {
  const T* all = static_cast<const T*>(sorted);
  grid_loop(count, stream,
            [=] __device__(int64_t i) { starts[i] = i == 0 || !(widened(all[i]) == widened(all[i - 1])); });
  return cudaGetLastError();
}

}  // namespace

void launch_search(const SearchCall& call, cudaStream_t stream) {
  switch (call.dtype) {
    case 3:
      return search<int32_t>(call, stream);
    case 4:
      return search<int64_t>(call, stream);
    case 6:
      return search<float>(call, stream);
    default:
      return search<double>(call, stream);
  }
}

void launch_repeat(const int64_t* sums, int64_t n, int64_t count, int itemsize, void* out, int* noted, int note,
                   cudaStream_t stream) {
  by_word(itemsize, [&](auto word) { repeat<decltype(word)>(sums, n, count, out, noted, note, stream); });
}

cudaError_t launch_range(int dtype, const void* in, int64_t count, double* range, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_REAL_CASES(find_range, in, count, range, stream));
}

cudaError_t launch_count_bins(int dtype, const void* in, int64_t count, int64_t bins, const double* range,
                              unsigned long long* counts, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_REAL_CASES(count_bins, in, count, bins, range, counts, stream));
}

cudaError_t launch_middle(int dtype, const void* sorted, int64_t rows, int64_t length, bool skip_nans, void* values,
                          cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_REAL_CASES(middle, sorted, rows, length, skip_nans, values, stream));
}

cudaError_t launch_most_frequent(int dtype, const void* sorted, const int64_t* positions, int64_t rows, int64_t length,
                                 void* values, int64_t* at, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype,
                         SCONCE_ORDERED_CASES(most_frequent, sorted, positions, rows, length, values, at, stream));
}

cudaError_t launch_starts(const void* sorted, int dtype, int64_t count, bool* starts, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_ORDERED_CASES(find_starts, sorted, count, starts, stream));
}

}  // namespace sconce::cuda
