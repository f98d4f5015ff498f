// Selection by masks on a device without waiting for counts, for host code. Masks are packed bytes, 0 or 1; elements
// have `itemsize` bytes. A null scratch asks for its size and does nothing else. `noted`: where `note` goes for what
// only kernels see.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sconce::cuda {

struct Mask {
  const uint8_t* set;
  int64_t count;
};

// out[i] = source[number of those set before i] where the mask is set, else self[i]; more than `available` is noted.
cudaError_t masked_scatter(void* scratch, size_t& scratch_bytes, const Mask& mask, int itemsize, const void* self,
                           const void* source, int64_t available, void* out, int* noted, int note, cudaStream_t stream);
// The elements of `from` where the mask is set, one behind the other; more than `room` is noted. total: how many.
cudaError_t masked_gather(void* scratch, size_t& scratch_bytes, const Mask& mask, int itemsize, const void* from,
                          void* out, int64_t room, int64_t* total, int* noted, int note, cudaStream_t stream);
// out[d][i] = a coordinate of the i-th that is set, of the first `room`; out [rank, room] packed, rank up to 16.
cudaError_t select_coordinates(void* scratch, size_t& scratch_bytes, const Mask& mask, int rank, const int64_t* sizes,
                               int64_t room, int64_t* out, int64_t* total, cudaStream_t stream);

}  // namespace sconce::cuda
