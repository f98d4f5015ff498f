// Repeated numbers on a device, for host code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

// out[i] = the first j with sums[j] > i, for inclusive sums of n > 0 numbers. Elements have `itemsize` bytes. Writes
// `note` to `noted` if the total is not `count`.
void launch_repeat(const int64_t* sums, int64_t n, int64_t count, int itemsize, void* out, int* noted, int note,
                   cudaStream_t stream);

}  // namespace sconce::cuda
