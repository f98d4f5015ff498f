// Sums of rows, for host code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

// sums[i] = sum of row i of packed [rows, width], divided by `divisor`. Floats and complex numbers sum in float64,
// integers (divisor 1) in int64. dtype: c10::ScalarType of both; cudaErrorNotSupported for others.
cudaError_t launch_row_sums(const void* in, int dtype, int64_t rows, int64_t width, double divisor, void* sums,
                            cudaStream_t stream);

}  // namespace sconce::cuda
