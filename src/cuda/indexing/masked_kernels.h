// Selection by masks on a device, for host code; the host does not wait for counts. Masks are packed bytes 0 or 1;
// elements have `itemsize` bytes. With a null scratch, a call only returns its size. Kernels write `note` to `noted`
// for errors that only they see.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sconce::cuda {

struct Mask {
  const uint8_t* set;
  int64_t count;
};

// out[i] = source[set elements before i] if mask[i] is set, else self[i]. Notes an error beyond `available`.
cudaError_t masked_scatter(void* scratch, size_t& scratch_bytes, const Mask& mask, int itemsize, const void* self,
                           const void* source, int64_t available, void* out, int* noted, int note, cudaStream_t stream);
// Packs the elements of `from` whose mask is set; writes their count to `total`. Notes an error beyond `room`.
cudaError_t masked_gather(void* scratch, size_t& scratch_bytes, const Mask& mask, int itemsize, const void* from,
                          void* out, int64_t room, int64_t* total, int* noted, int note, cudaStream_t stream);

}  // namespace sconce::cuda
