// A rank orders a number and its index in one word, so that no two words of a row are equal: the largest is a maximum,
// and the k largest are the words from the k-th on. That one is found by counting digits, from the highest down.
#include <cub/block/block_scan.cuh>

#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/sorting/largest_kernels.h"

namespace sconce::cuda {
namespace {

using Rank = unsigned long long;

// rank_of() of sconce/device_memory.h.
__device__ Rank rank_of(float value, int64_t index) {
  const unsigned bits = __float_as_uint(value);
  unsigned key = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) key = 0xFFFFFFFFu;
  if ((bits & 0x7FFFFFFFu) == 0) key = 0x80000000u;
  return static_cast<Rank>(key) << 32 | (0xFFFFFFFFu - static_cast<unsigned>(index));
}

// Where a kernel's ranks come from: numbers, or ranks that an earlier kernel left, with 0 for none.
template <class T>
struct Numbers {
  const T* in;
  int64_t row_stride, step;
  __device__ Rank operator()(int64_t row, int64_t i) const {
    return rank_of(widened(in[row * row_stride + i * step]), i);
  }
};
struct Ranks {
  const Rank* in;
  int64_t length;
  __device__ Rank operator()(int64_t row, int64_t i) const { return in[row * length + i]; }
};

// Blocks of x are the parts of a row, rows go over y. Writes to [rows, parts, count].
struct Part {
  int64_t rows, length, part_length;
  int count;
  Rank* to;

  __device__ int64_t begin() const { return blockIdx.x * part_length; }
  __device__ int64_t end() const { return min(length, begin() + part_length); }
  __device__ Rank* place(int64_t row) const { return to + (row * gridDim.x + blockIdx.x) * count; }
};

constexpr int kOneThreads = 1024, kOneItems = 8;

template <class Source>
__global__ void __launch_bounds__(kOneThreads) largest_one(Source source, Part part) {
  __shared__ Rank of_warps[32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int64_t row = blockIdx.y; row < part.rows; row += gridDim.y) {
    Rank best = 0;
    for (int64_t tile = part.begin(); tile < part.end(); tile += kOneThreads * kOneItems) {
      Rank ranks[kOneItems];
#pragma unroll
      for (int i = 0; i < kOneItems; ++i) {
        const int64_t at = tile + i * kOneThreads + threadIdx.x;
        ranks[i] = at < part.end() ? source(row, at) : 0;
      }
#pragma unroll
      for (int i = 0; i < kOneItems; ++i) best = max(best, ranks[i]);
    }
#pragma unroll
    for (int away = 16; away > 0; away /= 2) best = max(best, __shfl_xor_sync(0xFFFFFFFFu, best, away));
    __syncthreads();  // the previous row's words have been read
    if (lane == 0) of_warps[warp] = best;
    __syncthreads();
    if (warp > 0) continue;
    best = of_warps[lane];
#pragma unroll
    for (int away = 16; away > 0; away /= 2) best = max(best, __shfl_xor_sync(0xFFFFFFFFu, best, away));
    if (lane == 0) *part.place(row) = best;
  }
}

constexpr int kThreads = 512, kItems = 8, kTile = kThreads * kItems;
constexpr int kDigitBits = 11, kBins = 1 << kDigitBits, kBinsEach = kBins / kThreads;
static_assert(kMaxRanks <= kThreads && kBins % kThreads == 0);
using Scan = cub::BlockScan<int, kThreads>;

struct Shared {
  Rank kept[kMaxRanks];
  int bins[kBins];
  typename Scan::TempStorage scan;
  Rank least;  // the digits of the last wanted rank that are known
  int wanted;  // ranks with these digits that are wanted
  bool done;
  int count;  // of kept
};

// The least of the `count` largest of all threads' ranks, or a word between it and the next one; there are more ranks
// than that.
__device__ Rank least_of_largest(const Rank (&ranks)[kItems + 1], int count, Shared& shared) {
  if (threadIdx.x == 0) {
    shared.least = 0;
    shared.wanted = count;
    shared.done = false;
  }
  for (int known = 0;; known += kDigitBits) {
    const int width = min(64 - known, kDigitBits), shift = 64 - known - width;
    for (int bin = threadIdx.x; bin < kBins; bin += kThreads) shared.bins[bin] = 0;
    __syncthreads();
    const Rank least = shared.least;
#pragma unroll
    for (int i = 0; i <= kItems; ++i)
      if (ranks[i] != 0 && (known == 0 || ranks[i] >> (64 - known) == least >> (64 - known)))
        atomicAdd(shared.bins + ((ranks[i] >> shift) & ((1u << width) - 1)), 1);
    __syncthreads();
    // Each thread has neighbouring bins, the first thread those of the highest digits.
    int of_bins[kBinsEach], mine = 0, before;
#pragma unroll
    for (int b = 0; b < kBinsEach; ++b) {
      of_bins[b] = shared.bins[kBins - 1 - static_cast<int>(threadIdx.x) * kBinsEach - b];
      mine += of_bins[b];
    }
    Scan(shared.scan).ExclusiveSum(mine, before);
    const int wanted = shared.wanted;
    __syncthreads();
    if (before < wanted && wanted <= before + mine) {
#pragma unroll
      for (int b = 0; b < kBinsEach; ++b) {
        if (before < wanted && wanted <= before + of_bins[b]) {
          shared.least = least | static_cast<Rank>(kBins - 1 - static_cast<int>(threadIdx.x) * kBinsEach - b) << shift;
          shared.wanted = wanted - before;
          shared.done = shift == 0 || wanted - before == of_bins[b];
        }
        before += of_bins[b];
      }
    }
    __syncthreads();
    if (shared.done) return shared.least;
  }
}

// sorted: in descending order; otherwise in any, with 0 in the places of ranks that a part has not.
template <class Source>
__global__ void __launch_bounds__(kThreads) largest_several(Source source, Part part, bool sorted) {
  __shared__ Shared shared;
  for (int64_t row = blockIdx.y; row < part.rows; row += gridDim.y) {
    int kept = 0;
    for (int64_t tile = part.begin(); tile < part.end(); tile += kTile) {
      Rank ranks[kItems + 1];
      int mine = 0;
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        const int64_t at = tile + i * kThreads + threadIdx.x;
        ranks[i] = at < part.end() ? source(row, at) : 0;
      }
      ranks[kItems] = static_cast<int>(threadIdx.x) < kept ? shared.kept[threadIdx.x] : 0;
#pragma unroll
      for (int i = 0; i <= kItems; ++i) mine += ranks[i] != 0;
      __syncthreads();  // what was kept has been read
      if (threadIdx.x == 0) shared.count = 0;
      __syncthreads();
      if (mine > 0) atomicAdd(&shared.count, mine);
      __syncthreads();
      const int all = shared.count;
      kept = min(all, part.count);
      const Rank least = all > part.count ? least_of_largest(ranks, part.count, shared) : 1;
      __syncthreads();
      if (threadIdx.x == 0) shared.count = 0;
      __syncthreads();
#pragma unroll
      for (int i = 0; i <= kItems; ++i)
        if (ranks[i] >= least) shared.kept[atomicAdd(&shared.count, 1)] = ranks[i];
      __syncthreads();
    }
    if (static_cast<int>(threadIdx.x) < part.count) {
      const Rank mine = static_cast<int>(threadIdx.x) < kept ? shared.kept[threadIdx.x] : 0;
      int place = static_cast<int>(threadIdx.x);
      if (sorted) {
        place = 0;
        for (int other = 0; other < kept; ++other) place += shared.kept[other] > mine;
      }
      part.place(row)[place] = mine;
    }
    __syncthreads();  // before the next row changes what is kept
  }
}

template <class Source>
cudaError_t reduce(const Source& source, const Part& part, int64_t parts, bool sorted, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>(parts), static_cast<unsigned>(part.rows < 65535 ? part.rows : 65535));
  if (part.count == 1)
    largest_one<<<blocks, kOneThreads, 0, stream>>>(source, part);
  else
    largest_several<<<blocks, kThreads, 0, stream>>>(source, part, sorted);
  return cudaGetLastError();
}

template <class T>
cudaError_t largest(void* scratch, const LargestCall& call, cudaStream_t stream) {
  const LargestParts parts = largest_parts(call.length, call.count);
  auto* const ranks = reinterpret_cast<Rank*>(call.ranks);
  auto* const between = parts.parts == 1 ? ranks : static_cast<Rank*>(scratch);
  const Numbers<T> numbers{static_cast<const T*>(call.in), call.row_stride, call.step};
  const cudaError_t error = reduce(numbers, {call.rows, call.length, parts.length, call.count, between}, parts.parts,
                                   parts.parts == 1, stream);
  if (error != cudaSuccess || parts.parts == 1) return error;
  const int64_t left = parts.parts * call.count;
  return reduce(Ranks{between, left}, {call.rows, left, left, call.count, ranks}, 1, true, stream);
}

}  // namespace

cudaError_t launch_largest(void* scratch, const LargestCall& call, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(call.dtype, SCONCE_FLOAT_CASES(largest, scratch, call, stream));
}

}  // namespace sconce::cuda
