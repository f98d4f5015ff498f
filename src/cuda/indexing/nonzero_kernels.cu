#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <thrust/iterator/counting_iterator.h>

#include <cub/device/device_select.cuh>

#include "src/cuda/device_code/element_sizes.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/indexing/nonzero_kernels.h"

namespace sconce::cuda {
namespace {

__device__ bool is_nonzero(const void* elements, int dtype, int64_t i) {
  switch (dtype) {
    case 5:
      return __half2float(static_cast<const __half*>(elements)[i]) != 0;
    case 6:
      return static_cast<const float*>(elements)[i] != 0;
    case 7:
      return static_cast<const double*>(elements)[i] != 0;
    case 8:
      return __half2float(static_cast<const __half*>(elements)[2 * i]) != 0 ||
             __half2float(static_cast<const __half*>(elements)[2 * i + 1]) != 0;
    case 9:
      return static_cast<const float*>(elements)[2 * i] != 0 || static_cast<const float*>(elements)[2 * i + 1] != 0;
    case 10:
      return static_cast<const double*>(elements)[2 * i] != 0 || static_cast<const double*>(elements)[2 * i + 1] != 0;
    case 15:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(elements)[i]) != 0;
    case 2:
    case 27:
      return static_cast<const uint16_t*>(elements)[i] != 0;
    case 3:
    case 28:
      return static_cast<const uint32_t*>(elements)[i] != 0;
    case 4:
    case 29:
      return static_cast<const uint64_t*>(elements)[i] != 0;
    default:
      return static_cast<const uint8_t*>(elements)[i] != 0;
  }
}

struct Sizes {
  int64_t of[16];
};

template <class T>
void gather(const void* elements, const int64_t* positions, int64_t count, int64_t length, void* values,
            cudaStream_t stream) {
  const T* from = static_cast<const T*>(elements);
  T* to = static_cast<T*>(values);
  grid_loop(count, stream, [=] __device__(int64_t i) { to[i] = from[i / length * length + positions[i]]; });
}

}  // namespace

void launch_gather(const void* elements, int itemsize, const int64_t* positions, int64_t count, int64_t length,
                   void* values, cudaStream_t stream) {
  if (itemsize == 16) return gather<uint4>(elements, positions, count, length, values, stream);
  by_word(itemsize, [&](auto word) { gather<decltype(word)>(elements, positions, count, length, values, stream); });
}

cudaError_t select_nonzero(void* scratch, size_t& scratch_bytes, const uint8_t* flags, int64_t count, int64_t* selected,
                           int64_t* selected_count, cudaStream_t stream) {
  return cub::DeviceSelect::Flagged(scratch, scratch_bytes, thrust::counting_iterator<int64_t>(0), flags, selected,
                                    selected_count, count, stream);
}

void launch_flags(const void* elements, int dtype, int64_t count, uint8_t* flags, cudaStream_t stream) {
  grid_loop(count, stream, [=] __device__(int64_t i) { flags[i] = is_nonzero(elements, dtype, i); });
}

void launch_coordinates(const int64_t* selected, int64_t count, int rank, const int64_t* sizes, int64_t* coordinates,
                        cudaStream_t stream) {
  Sizes s{};
  for (int d = 0; d < rank; ++d) s.of[d] = sizes[d];
  grid_loop(count, stream, [=] __device__(int64_t i) {
    int64_t rest = selected[i];
    for (int d = rank - 1; d >= 0; --d) {
      coordinates[d * count + i] = rest % s.of[d];
      rest /= s.of[d];
    }
  });
}

}  // namespace sconce::cuda
