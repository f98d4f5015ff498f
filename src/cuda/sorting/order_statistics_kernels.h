// Medians and modes of sorted rows on a device, for host code. dtype: c10::ScalarType.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

// The middle element of each sorted row [rows, length], where NaNs come last; skip_nans ignores them. Packed.
cudaError_t launch_middle(int dtype, const void* sorted, int64_t rows, int64_t length, bool skip_nans, void* values,
                          cudaStream_t stream);
// The most frequent element of each stably sorted row (the first of several), and its last position before sorting.
cudaError_t launch_most_frequent(int dtype, const void* sorted, const int64_t* positions, int64_t rows, int64_t length,
                                 void* values, int64_t* at, cudaStream_t stream);

}  // namespace sconce::cuda
