// Selection on a device, for host code. The caller owns all memory, which is on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sconce::cuda {

// values[s][i] = elements[s][positions[s][i]]
void launch_gather(const void* elements, int itemsize, const int64_t* positions, int64_t count, int64_t length,
                   void* values, cudaStream_t stream);

// Writes the row-major numbers of nonzero elements and, on the device too, their count.
cudaError_t select_nonzero(void* scratch, size_t& scratch_bytes, const uint8_t* flags, int64_t count, int64_t* selected,
                           int64_t* selected_count, cudaStream_t stream);
void launch_flags(const void* elements, int dtype, int64_t count, uint8_t* flags, cudaStream_t stream);
// Converts row-major numbers to coordinates[d][i].
void launch_coordinates(const int64_t* selected, int64_t count, int rank, const int64_t* sizes, int64_t* coordinates,
                        cudaStream_t stream);

}  // namespace sconce::cuda
