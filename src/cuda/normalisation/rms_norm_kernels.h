// The normalisation of packed rows, for host code. dtype: c10::ScalarType; cudaErrorNotSupported for others than the
// floating ones.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

// y = x [rows, length] / root mean square * weight (null: 1); roots [rows] = 1 / root mean square. weight and roots are
// float32, or float64 if x is.
struct RmsNorm {
  const void *x, *weight;
  void *y, *roots;
  int64_t rows, length;
  double epsilon;
};
cudaError_t launch_rms_norm(const RmsNorm& norm, int dtype, cudaStream_t stream);

}  // namespace sconce::cuda
