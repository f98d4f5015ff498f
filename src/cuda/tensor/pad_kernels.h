// Padding by a constant, for host code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

// [planes, in] within [planes, out], `before` elements from the start of each side; both packed, with fewer than 2^31
// elements.
struct PaddedPlanes {
  int64_t planes;
  int64_t in[3], out[3], before[3];
};
// `element`: the padding value, on the host. The address of `out` is a multiple of 16.
void launch_pad(const PaddedPlanes& planes, int itemsize, const void* in, const void* element, void* out,
                cudaStream_t stream);

}  // namespace sconce::cuda
