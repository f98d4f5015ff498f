#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include "src/cuda/device_code/element_sizes.cuh"
#include "src/cuda/indexing/masked_kernels.h"

namespace sconce::cuda {
namespace {

struct Ones {
  __host__ __device__ int64_t operator()(uint8_t set) const { return set != 0; }
};

// Gets the number of set elements before i, straight from the scan, which stores no sums.
template <class Word>
struct Scattered {
  __device__ void operator()(int64_t i, int64_t before) const {
    const bool taken = set[i] != 0;
    if (taken && before >= available) {
      *noted = note;
      return;
    }
    out[i] = taken ? source[before] : self[i];
  }

  const uint8_t* set;
  const Word *self, *source;
  int64_t available;
  Word* out;
  int* noted;
  int note;
};

template <class Word>
struct Gathered {
  __device__ void operator()(int64_t i, const Word& element) const {
    if (i < room)
      out[i] = element;
    else
      *noted = note;
  }

  Word* out;
  int64_t room;
  int* noted;
  int note;
};

}  // namespace

cudaError_t masked_scatter(void* scratch, size_t& scratch_bytes, const Mask& mask, int itemsize, const void* self,
                           const void* source, int64_t available, void* out, int* noted, int note,
                           cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  by_size(itemsize, [&](auto sample) {
    using Word = decltype(sample);
    const Scattered<Word> to{mask.set,  static_cast<const Word*>(self), static_cast<const Word*>(source),
                             available, static_cast<Word*>(out),        noted,
                             note};
    error = cub::DeviceScan::ExclusiveSum(scratch, scratch_bytes, thrust::make_transform_iterator(mask.set, Ones{}),
                                          thrust::make_tabulate_output_iterator(to), mask.count, stream);
  });
  return error;
}

cudaError_t masked_gather(void* scratch, size_t& scratch_bytes, const Mask& mask, int itemsize, const void* from,
                          void* out, int64_t room, int64_t* total, int* noted, int note, cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  by_size(itemsize, [&](auto sample) {
    using Word = decltype(sample);
    const Gathered<Word> to{static_cast<Word*>(out), room, noted, note};
    error = cub::DeviceSelect::Flagged(scratch, scratch_bytes, static_cast<const Word*>(from), mask.set,
                                       thrust::make_tabulate_output_iterator(to), total, mask.count, stream);
  });
  return error;
}

}  // namespace sconce::cuda
