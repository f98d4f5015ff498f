// Selection on a device, for host code. The caller owns all memory, which is on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sconce::cuda {

// values[s][i] = elements[s][positions[s][i]]
void launch_gather(const void* elements, int itemsize, const int64_t* positions, int64_t count, int64_t length,
                   void* values, cudaStream_t stream);

// Packed elements of a dtype (c10::ScalarType), in chunks.
struct NonzeroInput {
  const void* elements;
  int dtype;
  int64_t count;
};
int64_t nonzero_chunks(const NonzeroInput& in);
// Writes the number of non-zero elements before each chunk and, after the last of `chunks`, their total.
void launch_nonzero_counts(const NonzeroInput& in, int64_t* chunks, cudaStream_t stream);
// out[d][i] = coordinate d of the i-th element that is not zero, for the first `room`; out [rank, room] is packed,
// rank at most 16. The rest of each row gets `fill`.
void launch_nonzero_coordinates(const NonzeroInput& in, const int64_t* chunks, int rank, const int64_t* sizes,
                                int64_t room, int64_t fill, int64_t* out, cudaStream_t stream);

}  // namespace sconce::cuda
