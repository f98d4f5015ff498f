// Sums of rows, for host code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

// sums[i] = the sum of row i of [rows, width], over `divisor`: floats and complex numbers in float64, whole numbers
// (divisor 1) in int64. Packed; dtype: c10::ScalarType of both; cudaErrorNotSupported for others.
cudaError_t launch_row_sums(const void* in, int dtype, int64_t rows, int64_t width, double divisor, void* sums,
                            cudaStream_t stream);

}  // namespace sconce::cuda
