#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "src/cuda/device_code/division.cuh"
#include "src/cuda/device_code/element_sizes.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/indexing/nonzero_kernels.h"

namespace sconce::cuda {
namespace {

constexpr int kThreads = 256, kLoadBytes = 16, kLoads = 4, kScanThreads = 512;

// The bits of an element that are not zero if the element is not: all but the signs of floating parts.
uint64_t value_bits(int dtype) {
  switch (dtype) {
    case 5:
    case 15:
      return 0x7FFF;
    case 6:
      return 0x7FFFFFFF;
    case 8:
      return 0x7FFF7FFF;
    case 7:
    case 10:
      return 0x7FFFFFFFFFFFFFFF;
    case 9:
      return 0x7FFFFFFF7FFFFFFF;
    default:
      return ~uint64_t{0};
  }
}
int item_bytes(int dtype) {
  switch (dtype) {
    case 2:
    case 5:
    case 15:
    case 27:
      return 2;
    case 3:
    case 6:
    case 8:
    case 28:
      return 4;
    case 4:
    case 7:
    case 9:
    case 29:
      return 8;
    case 10:
      return 16;
    default:
      return 1;
  }
}

template <class Word>
__device__ bool has_bits(Word element, uint64_t bits) {
  return (element & static_cast<Word>(bits)) != 0;
}
__device__ inline bool has_bits(const Bytes16& element, uint64_t bits) {
  return ((element.low | element.high) & bits) != 0;
}

// A thread looks at kAtOnce elements in a row at a time.
template <class Word>
constexpr int kAtOnce = kLoadBytes / static_cast<int>(sizeof(Word));
template <class Word>
constexpr int kTile = kThreads* kAtOnce<Word>;
template <class Word>
constexpr int64_t kChunk = int64_t{kTile<Word>} * kLoads;

// Bit i: whether element first + i is not zero.
template <class Word>
__device__ unsigned nonzero_of(const Word* elements, int64_t first, int64_t count, uint64_t bits, bool aligned) {
  constexpr int kCount = kAtOnce<Word>;
  unsigned found = 0;
  if (aligned && first + kCount <= count) {
    struct alignas(kLoadBytes) Load {
      Word at[kCount];
    };
    const Load load = *reinterpret_cast<const Load*>(elements + first);
#pragma unroll
    for (int i = 0; i < kCount; ++i) found |= static_cast<unsigned>(has_bits(load.at[i], bits)) << i;
    return found;
  }
  for (int i = 0; i < kCount; ++i)
    if (first + i < count) found |= static_cast<unsigned>(has_bits(elements[first + i], bits)) << i;
  return found;
}

template <class Word>
__global__ void __launch_bounds__(kThreads)
    count_kernel(const Word* elements, int64_t count, uint64_t bits, bool aligned, int64_t* chunks) {
  using Reduce = cub::BlockReduce<int, kThreads>;
  __shared__ typename Reduce::TempStorage memory;
  const int64_t first = blockIdx.x * kChunk<Word> + threadIdx.x * kAtOnce<Word>;
  int found = 0;
#pragma unroll
  for (int load = 0; load < kLoads; ++load)
    found += __popc(nonzero_of(elements, first + int64_t{load} * kTile<Word>, count, bits, aligned));
  found = Reduce(memory).Sum(found);
  if (threadIdx.x == 0) chunks[blockIdx.x] = found;
}

// Replaces counts by the sums of those before; one block.
__global__ void __launch_bounds__(kScanThreads) sums_kernel(int64_t* chunks, int64_t count) {
  using Scan = cub::BlockScan<int64_t, kScanThreads>;
  __shared__ typename Scan::TempStorage memory;
  int64_t before = 0;
  for (int64_t first = 0; first < count; first += kScanThreads) {
    const int64_t at = first + threadIdx.x;
    int64_t mine = at < count ? chunks[at] : 0, sum = 0;
    Scan(memory).ExclusiveSum(mine, mine, sum);
    if (at < count) chunks[at] = before + mine;
    before += sum;
    __syncthreads();
  }
  if (threadIdx.x == 0) chunks[count] = before;
}

struct Coordinates {
  int rank;
  Divider sizes[16];
  int64_t room, fill;
  int64_t* out;

  __device__ void put(int64_t i, int64_t number) const {
    for (int d = rank - 1; d > 0; --d) out[d * room + i] = sizes[d].take(number);
    out[i] = number;
  }
};

// Collects the places of a tile's elements first, so that neighbours write neighbours.
template <class Word>
__global__ void __launch_bounds__(kThreads) coordinates_kernel(const Word* elements, int64_t count, uint64_t bits,
                                                               bool aligned, const int64_t* chunks, Coordinates to) {
  using Scan = cub::BlockScan<int, kThreads>;
  __shared__ typename Scan::TempStorage memory;
  __shared__ uint16_t places[kTile<Word>];
  int64_t done = chunks[blockIdx.x];
  const int64_t all = chunks[gridDim.x];
  for (int load = 0; load < kLoads; ++load) {
    const int64_t tile = blockIdx.x * kChunk<Word> + int64_t{load} * kTile<Word>;
    if (tile >= count || done >= to.room) break;
    const int mine = static_cast<int>(threadIdx.x) * kAtOnce<Word>;
    unsigned found = nonzero_of(elements, tile + mine, count, bits, aligned);
    int at = __popc(found), sum = 0;
    Scan(memory).ExclusiveSum(at, at, sum);
    for (; found; found &= found - 1) places[at++] = static_cast<uint16_t>(mine + __ffs(found) - 1);
    __syncthreads();
    for (int i = threadIdx.x; i < sum && done + i < to.room; i += kThreads) to.put(done + i, tile + places[i]);
    done += sum;
    __syncthreads();
  }
  for (int64_t i = all + blockIdx.x * int64_t{kThreads} + threadIdx.x; i < to.room; i += int64_t{gridDim.x} * kThreads)
    for (int d = 0; d < to.rank; ++d) to.out[d * to.room + i] = to.fill;
}

template <class T>
void gather(const void* elements, const int64_t* positions, int64_t count, int64_t length, void* values,
            cudaStream_t stream) {
  const T* from = static_cast<const T*>(elements);
  T* to = static_cast<T*>(values);
  grid_loop(count, stream, [=] __device__(int64_t i) { to[i] = from[i / length * length + positions[i]]; });
}

bool loads_aligned(const void* elements) { return reinterpret_cast<uintptr_t>(elements) % kLoadBytes == 0; }

}  // namespace

void launch_gather(const void* elements, int itemsize, const int64_t* positions, int64_t count, int64_t length,
                   void* values, cudaStream_t stream) {
  if (itemsize == 16) return gather<uint4>(elements, positions, count, length, values, stream);
  by_word(itemsize, [&](auto word) { gather<decltype(word)>(elements, positions, count, length, values, stream); });
}

int64_t nonzero_chunks(const NonzeroInput& in) {
  const int64_t chunk = int64_t{kThreads} * kLoads * kLoadBytes / item_bytes(in.dtype);
  return (in.count + chunk - 1) / chunk;
}

void launch_nonzero_counts(const NonzeroInput& in, int64_t* chunks, cudaStream_t stream) {
  const int64_t blocks = nonzero_chunks(in);
  by_size(item_bytes(in.dtype), [&](auto sample) {
    using Word = decltype(sample);
    count_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
        static_cast<const Word*>(in.elements), in.count, value_bits(in.dtype), loads_aligned(in.elements), chunks);
  });
  sums_kernel<<<1, kScanThreads, 0, stream>>>(chunks, blocks);
}

void launch_nonzero_coordinates(const NonzeroInput& in, const int64_t* chunks, int rank, const int64_t* sizes,
                                int64_t room, int64_t fill, int64_t* out, cudaStream_t stream) {
  Coordinates to{rank, {}, room, fill, out};
  for (int d = 0; d < rank; ++d) to.sizes[d] = Divider(sizes[d]);
  by_size(item_bytes(in.dtype), [&](auto sample) {
    using Word = decltype(sample);
    coordinates_kernel<<<static_cast<unsigned>(nonzero_chunks(in)), kThreads, 0, stream>>>(
        static_cast<const Word*>(in.elements), in.count, value_bits(in.dtype), loads_aligned(in.elements), chunks, to);
  });
}

}  // namespace sconce::cuda
