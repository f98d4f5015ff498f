// Radix selection. Counting digits from the highest down finds which digit the last wanted element has, and how many
// elements with that digit are wanted. A last pass fetches what orders before that element, and its first equals.
#include <algorithm>
#include <cub/block/block_scan.cuh>

#include "src/cuda/sorting/sort_keys.cuh"
#include "src/cuda/sorting/sorted_rows_kernels.h"

namespace sconce::cuda {
namespace {

constexpr int kThreads = 1024, kWarps = kThreads / 32, kItems = 8, kTile = kThreads * kItems;
constexpr int kDigitBits = 11, kBins = 1 << kDigitBits, kMaxPasses = (64 + kDigitBits - 1) / kDigitBits;
static_assert(kBins == 2 * kThreads);
using Scan = cub::BlockScan<int, kThreads>;

// What is known of the last wanted element: its key >> shift, and how many elements with these bits are wanted.
struct Found {
  uint64_t prefix;
  int shift, wanted, passes;
  bool done;
  int digits[kMaxPasses];

  // Bits of the next digit.
  __device__ int width() const { return min(shift, kDigitBits); }
};
__device__ Found nothing_found(int bits, int64_t count) {
  Found found{};
  found.shift = bits;
  found.wanted = static_cast<int>(count);
  return found;
}

struct Shared {
  int bins[kBins];
  typename Scan::TempStorage scan;
  Found found;
  int totals[kWarps];
  bool last;
};

// Counts the next digit of the keys in [begin, end) that have the prefix.
template <class Word>
__device__ void count_digits(const Keys<Word>& keys, int64_t row_begin, int begin, int end, const Found& found,
                             int* bins) {
  const int width = found.width(), shift = found.shift - width;
  const Word prefix = static_cast<Word>(found.prefix);
  for (int64_t tile = begin; tile < end; tile += kTile) {
    Word elements[kItems];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int64_t at = tile + i * kThreads + threadIdx.x;
      elements[i] = at < end ? keys.element(row_begin + at) : Word{0};
    }
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (tile + i * kThreads + threadIdx.x >= end) break;
      const Word digits = static_cast<Word>(keys.key(elements[i]) >> shift);
      if (static_cast<Word>(digits >> width) == prefix) atomicAdd(bins + (digits & ((1 << width) - 1)), 1);
    }
  }
}

// Finds the digit of the last wanted element from the counts of this thread's two bins. Callers synchronise before they
// read the result.
__device__ void choose(int first, int second, bool last_only, Shared& shared) {
  int before;
  Scan(shared.scan).ExclusiveSum(first + second, before);
  Found found = shared.found;
  __syncthreads();
  if (before < found.wanted && found.wanted <= before + first + second) {
    const bool is_second = found.wanted > before + first;
    const int width = found.width(), digit = 2 * threadIdx.x + is_second, inside = is_second ? second : first;
    found.wanted -= is_second ? before + first : before;
    found.prefix = found.prefix << width | static_cast<unsigned>(digit);
    found.shift -= width;
    found.digits[found.passes++] = digit;
    found.done = found.shift == 0 || (!last_only && found.wanted == inside);
    shared.found = found;
  }
}

// Fetches from [begin, end) of a row, in order. Before it are `less` elements that order before the prefix and `equal`
// ones that have it.
template <class Word>
__device__ void fetch(const Keys<Word>& keys, const SelectCall& call, int64_t row, int begin, int end, int less,
                      int equal, Shared& shared) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int shift = shared.found.shift, wanted = shared.found.wanted;
  const Word prefix = static_cast<Word>(shared.found.prefix);
  const unsigned lower_lanes = (1u << lane) - 1;
  for (int64_t tile = begin; tile < end; tile += kTile) {
    // A warp takes kItems * 32 neighbours, item by item.
    const int64_t first = tile + warp * (kItems * 32) + lane;
    Word elements[kItems];
    unsigned less_lanes[kItems], equal_lanes[kItems];
    int mine = 0;  // of the warp; packs less | equal << 16
#pragma unroll
    for (int i = 0; i < kItems; ++i)
      elements[i] = first + i * 32 < end ? keys.element(row * call.length + first + i * 32) : Word{0};
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const bool there = first + i * 32 < end;
      const Word digits = static_cast<Word>(keys.key(elements[i]) >> shift);
      less_lanes[i] = __ballot_sync(0xFFFFFFFFu, there && digits < prefix);
      equal_lanes[i] = __ballot_sync(0xFFFFFFFFu, there && digits == prefix);
      mine += __popc(less_lanes[i]) | __popc(equal_lanes[i]) << 16;
    }
    __syncthreads();  // the previous tile's totals have been read
    if (lane == 0) shared.totals[warp] = mine;
    __syncthreads();
    int until = shared.totals[lane];
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(0xFFFFFFFFu, until, step);
      if (lane >= step) until += other;
    }
    const int all = __shfl_sync(0xFFFFFFFFu, until, 31), before = __shfl_sync(0xFFFFFFFFu, until, warp) - mine;
    int less_at = less + (before & 0xFFFF), equal_at = equal + (before >> 16);
    if (mine != 0) {
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        const bool is_less = less_lanes[i] >> lane & 1, is_equal = equal_lanes[i] >> lane & 1;
        const int less_before = less_at + __popc(less_lanes[i] & lower_lanes),
                  equal_before = equal_at + __popc(equal_lanes[i] & lower_lanes);
        int64_t to = -1;
        if (call.last_only) {
          if (is_equal && equal_before == wanted - 1) to = row;
        } else if (is_less || (is_equal && equal_before < wanted)) {
          to = row * call.count + less_before + min(equal_before, wanted);
        }
        if (to >= 0) {
          keys.store(call.values, to, elements[i]);
          call.indices[to] = first + i * 32;
        }
        less_at += __popc(less_lanes[i]);
        equal_at += __popc(equal_lanes[i]);
      }
    }
    less += all & 0xFFFF;
    equal += all >> 16;
  }
}

// One block per row.
template <class Word>
__global__ void __launch_bounds__(kThreads) select_in_blocks(Keys<Word> keys, SelectCall call, int bits) {
  __shared__ Shared shared;
  for (int64_t row = blockIdx.x; row < call.rows; row += gridDim.x) {
    __syncthreads();
    if (threadIdx.x == 0) shared.found = nothing_found(bits, call.count);
    bool done = false;
    while (!done) {
      shared.bins[threadIdx.x] = shared.bins[threadIdx.x + kThreads] = 0;
      __syncthreads();
      count_digits(keys, row * call.length, 0, static_cast<int>(call.length), shared.found, shared.bins);
      __syncthreads();
      choose(shared.bins[2 * threadIdx.x], shared.bins[2 * threadIdx.x + 1], call.last_only, shared);
      __syncthreads();
      done = shared.found.done;
    }
    fetch(keys, call, row, 0, static_cast<int>(call.length), 0, 0, shared);
  }
}

// Several blocks per row.
struct Parts {
  int parts, length;  // per row; elements per part except the last
  Found* found;       // [rows]
  unsigned* arrived;  // [rows]; 0 between kernels, as row_bins are
  int* row_bins;      // [rows, kBins]
  int* bins;          // [passes, rows, parts, kBins]
  int2* counts;       // [rows, parts]: less, equal

  __device__ int* bins_of(int pass, int64_t rows) const {
    return bins + ((pass * rows + blockIdx.y) * parts + blockIdx.x) * kBins;
  }
  __device__ int begin() const { return static_cast<int>(blockIdx.x) * length; }
  __device__ int end(int64_t row_length) const {
    const int64_t end = static_cast<int64_t>(begin()) + length;
    return static_cast<int>(end < row_length ? end : row_length);
  }
};

template <class Word>
__global__ void __launch_bounds__(kThreads)
    count_in_parts(Keys<Word> keys, SelectCall call, int bits, int pass, Parts parts) {
  __shared__ Shared shared;
  const int64_t row = blockIdx.y;
  if (threadIdx.x == 0) shared.found = pass == 0 ? nothing_found(bits, call.count) : parts.found[row];
  shared.bins[threadIdx.x] = shared.bins[threadIdx.x + kThreads] = 0;
  __syncthreads();
  if (shared.found.done) return;
  count_digits(keys, row * call.length, parts.begin(), parts.end(call.length), shared.found, shared.bins);
  __syncthreads();
  int* const own = parts.bins_of(pass, call.rows);
  int* const of_row = parts.row_bins + row * kBins;
  for (int bin = threadIdx.x; bin < kBins; bin += kThreads) {
    const int count = shared.bins[bin];
    own[bin] = count;
    if (count != 0) atomicAdd(of_row + bin, count);
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) shared.last = atomicAdd(parts.arrived + row, 1u) + 1 == gridDim.x;
  __syncthreads();
  if (!shared.last) return;
  __threadfence();
  const int first = __ldcg(of_row + 2 * threadIdx.x), second = __ldcg(of_row + 2 * threadIdx.x + 1);
  of_row[2 * threadIdx.x] = of_row[2 * threadIdx.x + 1] = 0;
  choose(first, second, call.last_only, shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    parts.found[row] = shared.found;
    parts.arrived[row] = 0;
  }
}

__global__ void __launch_bounds__(kThreads) count_before_parts(int64_t rows, Parts parts) {
  __shared__ typename Scan::TempStorage storage;
  const Found& found = parts.found[blockIdx.y];
  int mine = 0, equal = 0;
  for (int pass = 0; pass < found.passes; ++pass) {
    const int* const own = parts.bins_of(pass, rows);
    for (int bin = threadIdx.x; bin < found.digits[pass]; bin += kThreads) mine += own[bin];
    equal = own[found.digits[pass]];
  }
  int before, less;
  Scan(storage).ExclusiveSum(mine, before, less);
  if (threadIdx.x == 0) parts.counts[blockIdx.y * parts.parts + blockIdx.x] = {less, equal};
}

template <class Word>
__global__ void __launch_bounds__(kThreads) fetch_in_parts(Keys<Word> keys, SelectCall call, Parts parts) {
  __shared__ Shared shared;
  const int64_t row = blockIdx.y;
  if (threadIdx.x == 0) shared.found = parts.found[row];
  int less = 0, equal = 0, before;
  for (int part = threadIdx.x; part < blockIdx.x; part += kThreads) {
    const int2 counts = parts.counts[row * parts.parts + part];
    less += counts.x;
    equal += counts.y;
  }
  int all_less, all_equal;
  Scan(shared.scan).ExclusiveSum(less, before, all_less);
  __syncthreads();
  Scan(shared.scan).ExclusiveSum(equal, before, all_equal);
  __syncthreads();
  fetch(keys, call, row, parts.begin(), parts.end(call.length), all_less, all_equal, shared);
}

// How many parts a row is split into, to give each multiprocessor two blocks.
int parts_of(const SelectCall& call) {
  const int64_t parts = std::min(2 * call.multiprocessors / call.rows, call.length / (2 * kTile));
  return parts < 4 ? 1 : static_cast<int>(parts);
}

template <class Word>
cudaError_t select(void* scratch, size_t& scratch_bytes, const Keys<Word>& keys, const SelectCall& call, int bits,
                   cudaStream_t stream) {
  Parts parts{};
  parts.parts = parts_of(call);
  if (parts.parts == 1) {
    if (!scratch) {
      scratch_bytes = 0;
      return cudaSuccess;
    }
    const auto blocks = static_cast<unsigned>(std::min<int64_t>(call.rows, 1 << 20));
    select_in_blocks<<<blocks, kThreads, 0, stream>>>(keys, call, bits);
    return cudaGetLastError();
  }
  const int passes = (bits + kDigitBits - 1) / kDigitBits;
  const int64_t part = (call.length + parts.parts - 1) / parts.parts;
  parts.length = static_cast<int>((part + 31) / 32 * 32);
  parts.parts = static_cast<int>((call.length + parts.length - 1) / parts.length);
  char* const base = static_cast<char*>(scratch);
  size_t used = 0;
  const auto room = [&](int64_t bytes) {
    char* const at = base ? base + used : nullptr;
    used += (static_cast<size_t>(bytes) + 255) / 256 * 256;
    return at;
  };
  parts.row_bins = reinterpret_cast<int*>(room(call.rows * kBins * sizeof(int)));
  parts.arrived = reinterpret_cast<unsigned*>(room(call.rows * sizeof(unsigned)));
  const size_t zeroed = used;
  parts.found = reinterpret_cast<Found*>(room(call.rows * sizeof(Found)));
  parts.counts = reinterpret_cast<int2*>(room(call.rows * parts.parts * sizeof(int2)));
  parts.bins = reinterpret_cast<int*>(room(passes * call.rows * parts.parts * kBins * sizeof(int)));
  if (!scratch) {
    scratch_bytes = used;
    return cudaSuccess;
  }
  const cudaError_t error = cudaMemsetAsync(base, 0, zeroed, stream);
  if (error != cudaSuccess) return error;
  const dim3 grid(static_cast<unsigned>(parts.parts), static_cast<unsigned>(call.rows));
  for (int pass = 0; pass < passes; ++pass)
    count_in_parts<<<grid, kThreads, 0, stream>>>(keys, call, bits, pass, parts);
  count_before_parts<<<grid, kThreads, 0, stream>>>(call.rows, parts);
  fetch_in_parts<<<grid, kThreads, 0, stream>>>(keys, call, parts);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_select(void* scratch, size_t& scratch_bytes, const SelectCall& call, cudaStream_t stream) {
  const KeyForm form = key_form(call.dtype, call.descending);
  cudaError_t error = cudaErrorNotSupported;
  with_keys(call.in, form,
            [&](const auto& keys) { error = select(scratch, scratch_bytes, keys, call, form.bits, stream); });
  return error;
}

}  // namespace sconce::cuda
