// Kernels that sort a row within a warp or a block.
#pragma once

#include <cub/block/block_radix_sort.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <type_traits>

#include "src/cuda/sorting/sort_kernels.h"
#include "src/cuda/sorting/sort_keys.cuh"

namespace sconce::cuda {

constexpr int64_t kMaxGridBlocks = 1 << 20;
inline unsigned grid_of(int64_t blocks) {
  return static_cast<unsigned>(blocks < kMaxGridBlocks ? blocks : kMaxGridBlocks);
}

__device__ inline bool is_kept(const SortCall& call, int64_t place) {
  return place >= call.first && place < call.first + call.kept;
}
// Writes the element from position `at` of a row to `place` of the sorted row.
template <class Word>
__device__ void put_sorted(const Keys<Word>& keys, const SortCall& call, int64_t row, int64_t place, int64_t at,
                           Word element) {
  const int64_t to = row * call.kept + place - call.first;
  keys.store(call.values, to, element);
  call.indices[to] = call.labels ? call.labels[row * call.length + at] : at;
}

// A key with its position, which makes the order strict. Positions are below 65536.
template <class Word>
struct Placed {
  using Bits = std::conditional_t<sizeof(Word) == 2, uint32_t, uint64_t>;
  Bits bits;
  Placed() = default;
  __device__ Placed(Word key, int at) : bits(static_cast<Bits>(key) << 16 | static_cast<unsigned>(at)) {}
  __device__ int at() const { return static_cast<int>(bits & 0xFFFF); }
  __device__ bool operator<(const Placed& other) const { return bits < other.bits; }
  __device__ Placed of_lane(int lanes_away) const {
    Placed other;
    other.bits = __shfl_xor_sync(0xFFFFFFFFu, bits, lanes_away);
    return other;
  }
};
template <>
struct Placed<uint64_t> {
  uint64_t key;
  int place;
  Placed() = default;
  __device__ Placed(uint64_t k, int at) : key(k), place(at) {}
  __device__ int at() const { return place; }
  __device__ bool operator<(const Placed& other) const {
    return key < other.key || (key == other.key && place < other.place);
  }
  __device__ Placed of_lane(int lanes_away) const {
    return {__shfl_xor_sync(0xFFFFFFFFu, key, lanes_away), __shfl_xor_sync(0xFFFFFFFFu, place, lanes_away)};
  }
};
struct Before {
  template <class T>
  __device__ bool operator()(const T& a, const T& b) const {
    return a < b;
  }
};

// kWidth lanes per row; bitonic network.
template <class Word, int kWidth>
__global__ void __launch_bounds__(256) sort_in_lanes(Keys<Word> keys, SortCall call) {
  constexpr int kRows = 256 / kWidth;
  const int lane = threadIdx.x % kWidth;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kRows; first < call.rows;
       first += static_cast<int64_t>(gridDim.x) * kRows) {
    const int64_t row = first + threadIdx.x / kWidth;
    const bool there = row < call.rows && lane < call.length;
    const Word element = there ? keys.element(row * call.length + lane) : Word{0};
    Placed<Word> mine(there ? keys.key(element) : keys.mask, lane);
#pragma unroll
    for (int size = 2; size <= kWidth; size *= 2) {
#pragma unroll
      for (int step = size / 2; step > 0; step /= 2) {
        const Placed<Word> other = mine.of_lane(step);
        const bool ascending = size == kWidth || (lane & size) == 0, lower = (lane & step) == 0;
        if ((other < mine) == (lower == ascending)) mine = other;
      }
    }
    const auto found =
        static_cast<Word>(__shfl_sync(0xFFFFFFFFu, static_cast<unsigned long long>(element), mine.at(), kWidth));
    if (row < call.rows && is_kept(call, lane)) put_sorted(keys, call, row, lane, mine.at(), found);
  }
}

// One warp per row of up to 32 * kItems elements.
template <class Word, int kItems>
__global__ void __launch_bounds__(128) sort_in_warps(Keys<Word> keys, SortCall call) {
  using Sort = cub::WarpMergeSort<Placed<Word>, kItems, 32>;
  __shared__ typename Sort::TempStorage storage[4];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t step = static_cast<int64_t>(gridDim.x) * 4;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * 4 + warp; row < call.rows; row += step) {
    Placed<Word> mine[kItems];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int at = i * 32 + lane;
      mine[i] = {at < call.length ? keys.key(keys.element(row * call.length + at)) : keys.mask, at};
    }
    Sort(storage[warp]).Sort(mine, Before());
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int place = lane * kItems + i;
      if (is_kept(call, place))
        put_sorted(keys, call, row, place, mine[i].at(), keys.element(row * call.length + mine[i].at()));
    }
    __syncwarp();
  }
}

// One block per row of up to kThreads * kItems elements.
template <class Word, int kThreads, int kItems>
__global__ void __launch_bounds__(kThreads) sort_in_blocks(Keys<Word> keys, SortCall call, int bits) {
  using Sort = cub::BlockRadixSort<Word, kThreads, kItems, uint16_t>;
  __shared__ typename Sort::TempStorage storage;
  for (int64_t row = blockIdx.x; row < call.rows; row += gridDim.x) {
    Word mine[kItems];
    uint16_t at[kItems];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int place = threadIdx.x * kItems + i;
      at[i] = static_cast<uint16_t>(place);
      // Padding has the greatest key and a later position, so the stable sort puts it after the row's elements.
      mine[i] = place < call.length ? keys.key(keys.element(row * call.length + place)) : keys.mask;
    }
    Sort(storage).SortBlockedToStriped(mine, at, 0, bits);
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int place = i * kThreads + threadIdx.x;
      if (is_kept(call, place)) put_sorted(keys, call, row, place, at[i], keys.element(row * call.length + at[i]));
    }
    __syncthreads();
  }
}

template <class Word>
constexpr int64_t longest_in_block() {
  return sizeof(Word) == 2 ? 16384 : 4096;
}

// For rows of up to longest_in_block() elements.
template <class Word>
cudaError_t sort_short_rows(const Keys<Word>& keys, const SortCall& call, int bits, cudaStream_t stream) {
  const int64_t rows = call.rows, length = call.length;
  const auto lanes = [&](auto width) {
    constexpr int kWidth = decltype(width)::value, kRows = 256 / kWidth;
    sort_in_lanes<Word, kWidth><<<grid_of((rows + kRows - 1) / kRows), 256, 0, stream>>>(keys, call);
  };
  if (length <= 4)
    lanes(std::integral_constant<int, 4>());
  else if (length <= 8)
    lanes(std::integral_constant<int, 8>());
  else if (length <= 16)
    lanes(std::integral_constant<int, 16>());
  else if (length <= 32)
    lanes(std::integral_constant<int, 32>());
  else if (length <= 64)
    sort_in_warps<Word, 2><<<grid_of((rows + 3) / 4), 128, 0, stream>>>(keys, call);
  else if (length <= 128)
    sort_in_warps<Word, 4><<<grid_of((rows + 3) / 4), 128, 0, stream>>>(keys, call);
  else if (length <= 512)
    sort_in_blocks<Word, 128, 4><<<grid_of(rows), 128, 0, stream>>>(keys, call, bits);
  else if (length <= 1024)
    sort_in_blocks<Word, 128, 8><<<grid_of(rows), 128, 0, stream>>>(keys, call, bits);
  else if (length <= 2048)
    sort_in_blocks<Word, 256, 8><<<grid_of(rows), 256, 0, stream>>>(keys, call, bits);
  else if (length <= 4096)
    sort_in_blocks<Word, 512, 8><<<grid_of(rows), 512, 0, stream>>>(keys, call, bits);
  else if constexpr (sizeof(Word) == 2)
    sort_in_blocks<Word, 1024, 16><<<grid_of(rows), 1024, 0, stream>>>(keys, call, bits);
  return cudaGetLastError();
}

}  // namespace sconce::cuda
