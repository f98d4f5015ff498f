#include <algorithm>
#include <cmath>
#include <cub/block/block_load.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/device/device_scan.cuh>
#include <type_traits>

#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/reduction/scan_kernels.h"

namespace sconce::cuda {
namespace {

// A scan defines State, from(element, position), combine(earlier, later), value(state) and, with kPositions, at(state).
template <class T>
struct Sum {
  using State = Compute<T>;
  static constexpr bool kPositions = false;
  static __device__ State from(T element, int64_t) { return widened(element); }
  static __host__ __device__ State combine(State a, State b) { return a + b; }
  static __device__ T value(State s) { return narrowed<T>(s); }
  static __device__ uint32_t at(State) { return 0; }
};
template <class T>
struct Product : Sum<T> {
  using State = Compute<T>;
  static __host__ __device__ State combine(State a, State b) { return a * b; }
};
// A product as a significand from 1/2 to 1 and an exponent. The product of some middle elements may overflow or
// underflow the dtype although earlier elements bring it back, and infinity times an earlier zero would be NaN.
template <class T>
struct FloatingProduct {
  struct State {
    Compute<T> significand;
    int exponent;
  };
  static constexpr bool kPositions = false;
  static __device__ State from(T element, int64_t) {
    const Compute<T> x = widened(element);
    State s{x, 0};
    if (isfinite(x)) s.significand = frexp(x, &s.exponent);
    return s;
  }
  static __host__ __device__ State combine(const State& a, const State& b) {
    constexpr int kMost = 1 << 29;
    const Compute<T> product = a.significand * b.significand;
    const bool small = product < Compute<T>(0.5) && product > Compute<T>(-0.5) && product != 0;
    const int exponent = a.exponent + b.exponent - (small ? 1 : 0);
    return {small ? product * 2 : product, exponent > kMost ? kMost : exponent < -kMost ? -kMost : exponent};
  }
  static __device__ T value(const State& s) { return narrowed<T>(ldexp(s.significand, s.exponent)); }
  static __device__ uint32_t at(const State&) { return 0; }
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
// Takes the last of equal elements; a NaN persists.
template <class T, bool kMost>
struct Extreme {
  struct State {
    Compute<T> value;
    uint32_t at;
  };
  static constexpr bool kPositions = true;
  static __device__ State from(T element, int64_t position) {
    return {widened(element), static_cast<uint32_t>(position)};
  }
  static __host__ __device__ State combine(const State& a, const State& b) {
    const bool beyond = kMost ? b.value >= a.value : b.value <= a.value;
    return is_nan(b.value) || (!is_nan(a.value) && beyond) ? b : a;
  }
  static __device__ T value(const State& s) { return narrowed<T>(s.value); }
  static __device__ uint32_t at(const State& s) { return s.at; }
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
// If there are too few rows to fill a device, they are split into about kChunks chunks in all.
constexpr int64_t kFewRows = 1024, kChunks = 4096;

template <class T>
using LoadTile = cub::BlockLoad<T, kScanThreads, kScanItems, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
template <class T>
using StoreTile = cub::BlockStore<T, kScanThreads, kScanItems, cub::BLOCK_STORE_WARP_TRANSPOSE>;

// Writes the total of each chunk of a row except the last: totals [rows, chunks - 1].
template <class T, class Op>
__global__ void __launch_bounds__(kScanThreads) reduce_chunks(const T* in, int64_t rows, int64_t length, int64_t chunk,
                                                              int64_t totals_of_row, typename Op::State* totals) {
  using State = typename Op::State;
  using Reduce = cub::BlockReduce<State, kScanThreads, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
  __shared__ typename LoadTile<T>::TempStorage loading;
  __shared__ typename Reduce::TempStorage reducing;
  for (int64_t number = blockIdx.x; number < rows * totals_of_row; number += gridDim.x) {
    const int64_t row = number / totals_of_row * length, begin = number % totals_of_row * chunk;
    State total;
    for (int64_t tile = begin; tile < begin + chunk; tile += kTile) {
      T elements[kScanItems];
      LoadTile<T>(loading).Load(in + row + tile, elements);
      const int64_t first = tile + threadIdx.x * kScanItems;
      State mine = Op::from(elements[0], first);
#pragma unroll
      for (int i = 1; i < kScanItems; ++i) mine = Op::combine(mine, Op::from(elements[i], first + i));
      const State of_tile = Reduce(reducing).Reduce(mine, Combine<Op>());
      if (threadIdx.x == 0) total = tile == begin ? of_tile : Op::combine(total, of_tile);
      __syncthreads();
    }
    if (threadIdx.x == 0) totals[number] = total;
  }
}

// One block per row of totals.
template <class Op>
__global__ void __launch_bounds__(kScanThreads) scan_totals(typename Op::State* totals, int64_t totals_of_row) {
  using State = typename Op::State;
  using Block = cub::BlockScan<State, kScanThreads>;
  __shared__ typename Block::TempStorage storage;
  State* const row = totals + blockIdx.x * totals_of_row;
  State earlier;
  for (int64_t tile = 0; tile < totals_of_row; tile += kTile) {
    const int64_t first = tile + threadIdx.x * kScanItems;
    State mine[kScanItems], all;
#pragma unroll
    for (int i = 0; i < kScanItems; ++i)  // repeats the last one after the end; nobody reads that
      mine[i] = row[min(first + i, totals_of_row - 1)];
    Block(storage).InclusiveScan(mine, mine, Combine<Op>(), all);
#pragma unroll
    for (int i = 0; i < kScanItems; ++i)
      if (first + i < totals_of_row) row[first + i] = tile > 0 ? Op::combine(earlier, mine[i]) : mine[i];
    earlier = tile > 0 ? Op::combine(earlier, all) : all;
    __syncthreads();
  }
}

// One block per chunk, tile after tile. `before` [rows, chunks - 1] has the total before each chunk except the first.
template <class T, class Op>
__global__ void __launch_bounds__(kScanThreads)
    scan_rows(const T* in, T* out, int64_t* positions, int64_t rows, int64_t length, int64_t chunk,
              const typename Op::State* before) {
  using State = typename Op::State;
  using Block = cub::BlockScan<State, kScanThreads>;
  __shared__ union {
    typename LoadTile<T>::TempStorage load;
    typename Block::TempStorage scan;
    typename StoreTile<T>::TempStorage store;
    typename StoreTile<uint32_t>::TempStorage store_positions;
  } storage;
  const int64_t chunks = (length + chunk - 1) / chunk, all_chunks = rows * chunks;
  for (int64_t turn = blockIdx.x; turn < all_chunks; turn += gridDim.x) {
    // Starts from the end: the elements that were read last for the totals may still be in the cache.
    const int64_t number = all_chunks - 1 - turn, row = number / chunks, part = number % chunks;
    const int64_t begin = part * chunk, end = min(begin + chunk, length);
    bool continued = part > 0;
    State earlier;
    if (continued) earlier = before[row * (chunks - 1) + part - 1];
    for (int64_t tile = begin; tile < end; tile += kTile) {
      const int64_t at = row * length + tile;
      const int valid = static_cast<int>(min(end - tile, static_cast<int64_t>(kTile)));
      T elements[kScanItems];
      State mine[kScanItems], all;
      if (valid == kTile)
        LoadTile<T>(storage.load).Load(in + at, elements);
      else
        LoadTile<T>(storage.load).Load(in + at, elements, valid, T{});
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kScanItems; ++i) mine[i] = Op::from(elements[i], tile + threadIdx.x * kScanItems + i);
      Block(storage.scan).InclusiveScan(mine, mine, Combine<Op>(), all);
      __syncthreads();
      uint32_t places[kScanItems];
#pragma unroll
      for (int i = 0; i < kScanItems; ++i) {
        if (continued) mine[i] = Op::combine(earlier, mine[i]);
        elements[i] = Op::value(mine[i]);
        places[i] = Op::at(mine[i]);
      }
      earlier = continued ? Op::combine(earlier, all) : all;
      continued = true;
      if (valid == kTile)
        StoreTile<T>(storage.store).Store(out + at, elements);
      else
        StoreTile<T>(storage.store).Store(out + at, elements, valid);
      __syncthreads();
      if constexpr (Op::kPositions) {
        if (valid == kTile)
          StoreTile<uint32_t>(storage.store_positions).Store(positions + at, places);
        else
          StoreTile<uint32_t>(storage.store_positions).Store(positions + at, places, valid);
        __syncthreads();
      }
    }
  }
}

template <class T, class Op>
cudaError_t run(void* scratch, size_t& scratch_bytes, const ScanCall& c, cudaStream_t stream) {
  using State = typename Op::State;
  const T* in = static_cast<const T*>(c.in);
  T* out = static_cast<T*>(c.out);
  int64_t* positions = c.positions;
  const int64_t length = c.length, inner = c.inner;
  // Sums of integers do not depend on the order.
  if constexpr (std::is_same_v<T, int64_t> && !Op::kPositions)
    if (c.outer == 1 && inner == 1 && length >= 16 * kTile)
      return cub::DeviceScan::InclusiveScan(scratch, scratch_bytes, in, out, Combine<Op>(), length, stream);
  // Splits few long rows into chunks: computes their totals, then what precedes each, then the scan. Unlike a scan with
  // lookback, this adds floating-point numbers in a fixed order.
  int64_t chunk = (length + kTile - 1) / kTile * kTile;
  if (inner == 1 && c.outer < kFewRows && length >= 16 * kTile)
    chunk = std::max<int64_t>((length * c.outer / kChunks + kTile - 1) / kTile, 2) * kTile;
  const int64_t chunks = (length + chunk - 1) / chunk;
  if (!scratch) {
    scratch_bytes = static_cast<size_t>(c.outer * (chunks - 1)) * sizeof(State);
    return cudaSuccess;
  }
  if (inner == 1 && length > 16) {
    const auto blocks = [](int64_t count) { return static_cast<unsigned>(std::min<int64_t>(count, 1 << 20)); };
    auto* totals = static_cast<State*>(scratch);
    if (chunks > 1) {
      reduce_chunks<T, Op>
          <<<blocks(c.outer * (chunks - 1)), kScanThreads, 0, stream>>>(in, c.outer, length, chunk, chunks - 1, totals);
      scan_totals<Op><<<static_cast<unsigned>(c.outer), kScanThreads, 0, stream>>>(totals, chunks - 1);
    }
    scan_rows<T, Op>
        <<<blocks(c.outer * chunks), kScanThreads, 0, stream>>>(in, out, positions, c.outer, length, chunk, totals);
    return cudaGetLastError();
  }
  // One thread per row, with several loads in flight.
  grid_loop(c.outer * inner, stream, [=] __device__(int64_t i) {
    constexpr int kAhead = 8;
    int64_t at = i / inner * length * inner + i % inner;
    int64_t* const places = positions;
    State state;
    for (int64_t k = 0; k < length; k += kAhead) {
      T elements[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u)
        if (k + u < length) elements[u] = in[at + u * inner];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        if (k + u >= length) break;
        const State next = Op::from(elements[u], k + u);
        state = k + u == 0 ? next : Op::combine(state, next);
        out[at + u * inner] = Op::value(state);
        if constexpr (Op::kPositions) places[at + u * inner] = Op::at(state);
      }
      at += kAhead * inner;
    }
  });
  return cudaGetLastError();
}

template <class T>
cudaError_t run_sum(void* scratch, size_t& bytes, const ScanCall& c, cudaStream_t stream) {
  using Multiply = std::conditional_t<std::is_floating_point_v<Compute<T>>, FloatingProduct<T>, Product<T>>;
  return c.scan == Scan::kSum ? run<T, Sum<T>>(scratch, bytes, c, stream) : run<T, Multiply>(scratch, bytes, c, stream);
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
      SCONCE_RETURN_BY_DTYPE(call.dtype, SCONCE_REAL_CASES(run_sum, scratch, scratch_bytes, call, stream)
                                             SCONCE_COMPLEX_CASES(run_sum, scratch, scratch_bytes, call, stream));
    case Scan::kMost:
    case Scan::kLeast:
      SCONCE_RETURN_BY_DTYPE(call.dtype, SCONCE_ORDERED_CASES(run_extreme, scratch, scratch_bytes, call, stream));
    default:
      SCONCE_RETURN_BY_DTYPE(call.dtype, SCONCE_FLOATING_CASES(run_log_sum_exp, scratch, scratch_bytes, call, stream));
  }
}

}  // namespace sconce::cuda
