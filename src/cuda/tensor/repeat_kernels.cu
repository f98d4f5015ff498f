#include "src/cuda/device_code/element_sizes.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/tensor/repeat_kernels.h"

namespace sconce::cuda {
namespace {

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

}  // namespace

void launch_repeat(const int64_t* sums, int64_t n, int64_t count, int itemsize, void* out, int* noted, int note,
                   cudaStream_t stream) {
  by_word(itemsize, [&](auto word) { repeat<decltype(word)>(sums, n, count, out, noted, note, stream); });
}

}  // namespace sconce::cuda
