// Selection on a device, for host code. All memory is the caller's and of the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sconce::cuda {

// values[s][i] = elements[s][positions[s][i]]
void launch_gather(const void* elements, int itemsize, const int64_t* positions, int64_t count, int64_t length,
                   void* values, cudaStream_t stream);

// Row-major numbers of the elements that are not zero, and how many (on the device).
cudaError_t select_nonzero(void* scratch, size_t& scratch_bytes, const uint8_t* flags, int64_t count, int64_t* selected,
                           int64_t* selected_count, cudaStream_t stream);
void launch_flags(const void* elements, int dtype, int64_t count, uint8_t* flags, cudaStream_t stream);
// coordinates[d][i] of a shape, from row-major numbers.
void launch_coordinates(const int64_t* selected, int64_t count, int rank, const int64_t* sizes, int64_t* coordinates,
                        cudaStream_t stream);

}  // namespace sconce::cuda
