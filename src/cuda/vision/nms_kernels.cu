// Non-maximum suppression: all pairs of boxes at once, as bits; then one block goes through them in order.
#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/vision/vision_kernels.h"
#include "src/tensor/elements/rounded.h"

namespace sconce::cuda {
namespace {

// Whether the overlap of two boxes exceeds the threshold. As torchvision: sides are rounded to T, areas are not.
template <class T>
__device__ bool exceeds(const T* a, const T* b, float threshold) {
  using N = RoundedNumber<T>;
  using F = PlainNumber<T>;
  const auto at = [](T v) { return static_cast<F>(N(v)); };
  const auto side = [](F low, F high) { return fmax(static_cast<F>(N(high) - N(low)), F(0)); };
  const F width = side(fmax(at(a[0]), at(b[0])), fmin(at(a[2]), at(b[2])));
  const F height = side(fmax(at(a[1]), at(b[1])), fmin(at(a[3]), at(b[3])));
  const F common = width * height;
  const F area_a = (at(a[2]) - at(a[0])) * static_cast<F>(N(a[3]) - N(a[1]));
  const F area_b = (at(b[2]) - at(b[0])) * static_cast<F>(N(b[3]) - N(b[1]));
  return common / (area_a + area_b - common) > threshold;
}

// A block compares 64 boxes (rows) with 64 (columns), a row a thread.
template <class T>
__global__ void overlaps_kernel(const T* boxes, int64_t count, int64_t words, float threshold, uint64_t* overlaps) {
  // The upper triangle of pairs of words, by number.
  for (int64_t pair = blockIdx.x; pair < words * words; pair += gridDim.x) {
    const int64_t row_word = pair / words, word = pair % words;
    if (row_word > word) continue;
    __shared__ T columns[kBoxesOfWord * 4];
    const int64_t first = word * kBoxesOfWord, left = count - first;
    const int size = static_cast<int>(left < kBoxesOfWord ? left : kBoxesOfWord);
    __syncthreads();  // the threads are done with the pair before
    for (int i = threadIdx.x; i < size * 4; i += blockDim.x) columns[i] = boxes[first * 4 + i];
    __syncthreads();
    const int64_t row = row_word * kBoxesOfWord + threadIdx.x;
    if (row >= count) continue;
    uint64_t bits = 0;
    for (int i = row_word == word ? threadIdx.x + 1 : 0; i < size; ++i)
      if (exceeds(boxes + 4 * row, columns + 4 * i, threshold)) bits |= uint64_t{1} << i;
    overlaps[row * words + word] = bits;
  }
}

template <class T>
cudaError_t overlaps_of(const void* boxes, int64_t count, float threshold, uint64_t* overlaps, cudaStream_t stream) {
  const int64_t words = (count + kBoxesOfWord - 1) / kBoxesOfWord, pairs = words * words;
  constexpr int64_t kMaxBlocks = 1 << 20;
  overlaps_kernel<<<static_cast<unsigned>(pairs < kMaxBlocks ? pairs : kMaxBlocks), kBoxesOfWord, 0, stream>>>(
      static_cast<const T*>(boxes), count, words, threshold, overlaps);
  return cudaGetLastError();
}

constexpr int kKeepThreads = 256;

// Words in order: the first thread decides which of a word's boxes stay, then all remove what those suppress.
__global__ void kept_kernel(const uint64_t* overlaps, const int64_t* order, int64_t count, int64_t words,
                            uint64_t* removed, int64_t* kept, int64_t* kept_count) {
  __shared__ uint64_t stay;
  int64_t found = 0;  // of the first thread
  for (int64_t word = 0; word < words; ++word) {
    const int64_t first = word * kBoxesOfWord, left = count - first;
    const int size = static_cast<int>(left < kBoxesOfWord ? left : kBoxesOfWord);
    if (threadIdx.x == 0) {
      uint64_t gone = removed[word], staying = 0;
      for (int i = 0; i < size; ++i) {
        if (gone >> i & 1) continue;
        staying |= uint64_t{1} << i;
        gone |= overlaps[(first + i) * words + word];
        kept[found++] = order[first + i];
      }
      stay = staying;
    }
    __syncthreads();
    for (int64_t other = word + 1 + threadIdx.x; other < words; other += blockDim.x) {
      uint64_t gone = removed[other];
      for (uint64_t rest = stay; rest != 0; rest &= rest - 1)
        gone |= overlaps[(first + __ffsll(static_cast<long long>(rest)) - 1) * words + other];
      removed[other] = gone;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) *kept_count = found;
}

}  // namespace

cudaError_t launch_overlaps(int dtype, const void* boxes, int64_t count, float threshold, uint64_t* overlaps,
                            cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_DTYPE_CASE(5, __half, overlaps_of, boxes, count, threshold, overlaps, stream)
                                    SCONCE_SINGLE_DOUBLE_CASES(overlaps_of, boxes, count, threshold, overlaps, stream));
}

void launch_kept(const uint64_t* overlaps, const int64_t* order, int64_t count, uint64_t* removed, int64_t* kept,
                 int64_t* kept_count, cudaStream_t stream) {
  const int64_t words = (count + kBoxesOfWord - 1) / kBoxesOfWord;
  kept_kernel<<<1, kKeepThreads, 0, stream>>>(overlaps, order, count, words, removed, kept, kept_count);
}

}  // namespace sconce::cuda
