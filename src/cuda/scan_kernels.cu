#include "src/cuda/scan_kernels.h"

#include <cmath>
#include <cub/block/block_scan.cuh>

#include "src/cuda/device_types.cuh"
#include "src/cuda/grid_loop.cuh"

namespace sconce::cuda {
namespace {

// A scan: State load(in, i, position), combine(earlier, later), store(i, state).
template <class T>
struct Sum {
  using State = Compute<T>;
  static __device__ State load(const T* in, int64_t i, int64_t) { return widened(in[i]); }
  static __host__ __device__ State combine(State a, State b) { return a + b; }
  static __device__ void store(T* out, int64_t*, int64_t i, State s) { out[i] = narrowed<T>(s); }
};
template <class T>
struct Product : Sum<T> {
  using State = Compute<T>;
  static __host__ __device__ State combine(State a, State b) { return a * b; }
};
template <class T>
struct LogSumExp : Sum<T> {
  using State = Compute<T>;
  static __host__ __device__ State combine(State a, State b) {
    if (is_nan(a) || is_nan(b)) return a + b;
    const State low = a < b ? a : b, high = a < b ? b : a;
    return low == high && isinf(low) ? low : log1p(exp(low - high)) + high;
  }
};
// Of equal elements the last; a NaN stays.
template <class T, bool kMost>
struct Extreme {
  struct State {
    Compute<T> value;
    int64_t at;
  };
  static __device__ State load(const T* in, int64_t i, int64_t position) { return {widened(in[i]), position}; }
  static __host__ __device__ State combine(const State& a, const State& b) {
    const bool beyond = kMost ? b.value >= a.value : b.value <= a.value;
    return is_nan(b.value) || (!is_nan(a.value) && beyond) ? b : a;
  }
  static __device__ void store(T* out, int64_t* positions, int64_t i, const State& s) {
    out[i] = narrowed<T>(s.value);
    positions[i] = s.at;
  }
};
template <class T>
struct Most : Extreme<T, true> {};
template <class T>
struct Least : Extreme<T, false> {};

template <class Op>
struct Combine {
  template <class State>
  __host__ __device__ State operator()(const State& a, const State& b) const {
    return Op::combine(a, b);
  }
};

constexpr int kScanThreads = 128, kScanItems = 8, kTile = kScanThreads * kScanItems;
constexpr int64_t kMostChunks = 256;

// A block a chunk of a row, tile after tile. With totals the last state of each chunk goes there and nothing else is
// written; with `before` a chunk goes on from there.
template <class T, class Op>
__global__ void __launch_bounds__(kScanThreads) scan_rows(const T* in, T* out, int64_t* positions, int64_t rows,
                                                          int64_t length, int64_t chunk, typename Op::State* totals,
                                                          const typename Op::State* before) {
  using State = typename Op::State;
  using Block = cub::BlockScan<State, kScanThreads>;
  __shared__ typename Block::TempStorage storage;
  __shared__ __align__(16) unsigned char kept[sizeof(State)];
  State& carry = *reinterpret_cast<State*>(kept);
  const int64_t chunks = (length + chunk - 1) / chunk;
  for (int64_t number = blockIdx.x; number < rows * chunks; number += gridDim.x) {
    const int64_t row = number / chunks * length, begin = number % chunks * chunk, end = min(begin + chunk, length);
    for (int64_t tile = begin; tile < end; tile += kTile) {
      State mine[kScanItems];
      const int64_t first = tile + static_cast<int64_t>(threadIdx.x) * kScanItems;
#pragma unroll
      for (int i = 0; i < kScanItems; ++i)  // behind the end the last one once more: nobody reads it
        mine[i] = Op::load(in, row + min(first + i, end - 1), first + i);
      Block(storage).InclusiveScan(mine, mine, Combine<Op>());
      const bool continued = tile > begin || (before && begin > 0);
      State earlier;
      if (continued) earlier = tile > begin ? carry : before[number - 1];
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kScanItems; ++i) {
        if (continued) mine[i] = Op::combine(earlier, mine[i]);
        if (first + i >= end) break;
        if (!totals)
          Op::store(out, positions, row + first + i, mine[i]);
        else if (first + i == end - 1)
          totals[number] = mine[i];
      }
      if (threadIdx.x == kScanThreads - 1) carry = mine[kScanItems - 1];
      __syncthreads();
    }
  }
}

template <class Op>
__global__ void scan_totals(typename Op::State* totals, int64_t rows, int64_t chunks) {
  const int64_t row = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (row >= rows) return;
  typename Op::State state = totals[row * chunks];
  for (int64_t i = 1; i < chunks; ++i) totals[row * chunks + i] = state = Op::combine(state, totals[row * chunks + i]);
}

template <class T, class Op>
cudaError_t run(void* scratch, size_t& scratch_bytes, const ScanCall& c, cudaStream_t stream) {
  using State = typename Op::State;
  const T* in = static_cast<const T*>(c.in);
  T* out = static_cast<T*>(c.out);
  int64_t* positions = c.positions;
  const int64_t length = c.length, inner = c.inner;
  // Few long rows are cut into chunks: their totals, what comes before each of them, and then all of it.
  int64_t chunk = length;
  if (inner == 1 && c.outer <= 128 && length >= 16 * kTile)
    chunk = ((length + kMostChunks - 1) / kMostChunks + kTile - 1) / kTile * kTile;
  const int64_t chunks = (length + chunk - 1) / chunk;
  if (!scratch) {
    scratch_bytes = chunks > 1 ? static_cast<size_t>(c.outer * chunks) * sizeof(State) : 0;
    return cudaSuccess;
  }
  if (inner == 1 && length > 16) {
    const auto blocks = static_cast<unsigned>(c.outer * chunks < 1 << 20 ? c.outer * chunks : 1 << 20);
    auto* totals = static_cast<State*>(scratch);
    if (chunks > 1) {
      scan_rows<T, Op><<<blocks, kScanThreads, 0, stream>>>(in, out, positions, c.outer, length, chunk, totals, nullptr);
      scan_totals<Op><<<static_cast<unsigned>((c.outer + 31) / 32), 32, 0, stream>>>(totals, c.outer, chunks);
    }
    scan_rows<T, Op><<<blocks, kScanThreads, 0, stream>>>(in, out, positions, c.outer, length, chunk, nullptr,
                                                          chunks > 1 ? totals : nullptr);
    return cudaGetLastError();
  }
  grid_loop(c.outer * inner, stream, [=] __device__(int64_t i) {
    int64_t at = i / inner * length * inner + i % inner;
    State state = Op::load(in, at, 0);
    Op::store(out, positions, at, state);
    for (int64_t k = 1; k < length; ++k) {
      at += inner;
      state = Op::combine(state, Op::load(in, at, k));
      Op::store(out, positions, at, state);
    }
  });
  return cudaGetLastError();
}

template <class T>
cudaError_t run_sum(void* scratch, size_t& bytes, const ScanCall& c, cudaStream_t stream) {
  return c.scan == Scan::kSum ? run<T, Sum<T>>(scratch, bytes, c, stream)
                              : run<T, Product<T>>(scratch, bytes, c, stream);
}
template <class T>
cudaError_t run_extreme(void* scratch, size_t& bytes, const ScanCall& c, cudaStream_t stream) {
  return c.scan == Scan::kMost ? run<T, Most<T>>(scratch, bytes, c, stream)
                               : run<T, Least<T>>(scratch, bytes, c, stream);
}
template <class T>
cudaError_t run_log_sum_exp(void* scratch, size_t& bytes, const ScanCall& c, cudaStream_t stream) {
  return run<T, LogSumExp<T>>(scratch, bytes, c, stream);
}

}  // namespace

cudaError_t launch_scan(void* scratch, size_t& scratch_bytes, const ScanCall& call, cudaStream_t stream) {
  switch (call.scan) {
    case Scan::kSum:
    case Scan::kProduct:
      switch (call.dtype) {
        SCONCE_FLOATING_CASES(run_sum, scratch, scratch_bytes, call, stream)
        SCONCE_INTEGER_CASES(run_sum, scratch, scratch_bytes, call, stream)
        SCONCE_COMPLEX_CASES(run_sum, scratch, scratch_bytes, call, stream)
        default:
          return cudaErrorNotSupported;
      }
    case Scan::kMost:
    case Scan::kLeast:
      switch (call.dtype) {
        SCONCE_FLOATING_CASES(run_extreme, scratch, scratch_bytes, call, stream)
        SCONCE_INTEGER_CASES(run_extreme, scratch, scratch_bytes, call, stream)
        SCONCE_DTYPE_CASE(11, uint8_t, run_extreme, scratch, scratch_bytes, call, stream)
        default:
          return cudaErrorNotSupported;
      }
    default:
      switch (call.dtype) {
        SCONCE_FLOATING_CASES(run_log_sum_exp, scratch, scratch_bytes, call, stream)
        default:
          return cudaErrorNotSupported;
      }
  }
}

}  // namespace sconce::cuda
