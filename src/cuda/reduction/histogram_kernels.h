// Counting elements in bins on a device, for host code. dtype: c10::ScalarType.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

// Writes the least and the greatest of count > 0 elements as two doubles.
cudaError_t launch_range(int dtype, const void* in, int64_t count, double* range, cudaStream_t stream);
// counts[b] += 1 for each element in one of `bins` over [range[0], range[1]], widened by 1 if both are equal.
cudaError_t launch_count_bins(int dtype, const void* in, int64_t count, int64_t bins, const double* range,
                              unsigned long long* counts, cudaStream_t stream);

}  // namespace sconce::cuda
