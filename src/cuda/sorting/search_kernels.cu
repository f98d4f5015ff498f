#include "src/cuda/device_code/device_types.cuh"
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

cudaError_t launch_starts(const void* sorted, int dtype, int64_t count, bool* starts, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_ORDERED_CASES(find_starts, sorted, count, starts, stream));
}

}  // namespace sconce::cuda
