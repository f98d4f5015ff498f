#include <cmath>

#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/reduction/histogram_kernels.h"

namespace sconce::cuda {
namespace {

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

}  // namespace

cudaError_t launch_range(int dtype, const void* in, int64_t count, double* range, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_REAL_CASES(find_range, in, count, range, stream));
}

cudaError_t launch_count_bins(int dtype, const void* in, int64_t count, int64_t bins, const double* range,
                              unsigned long long* counts, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_REAL_CASES(count_bins, in, count, bins, range, counts, stream));
}

}  // namespace sconce::cuda
