// Rows of packed elements: compared, normalised, for host code. dtype: c10::ScalarType; cudaErrorNotSupported for
// those without kernel.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

// a [batch, p, m], b [batch, r, m]: result [batch, p, r], the p-norm of each difference. float32 or float64.
struct Distances {
  const void *a, *b;
  int64_t batch, p, r, m;
  double norm;
};
cudaError_t launch_distances(const Distances& distances, void* result, int dtype, cudaStream_t stream);

// x [rows, length] / root mean square * weight (null: 1); roots [rows]: 1 / root mean square. weight and roots are
// float32, of float64 float64.
struct RmsNorm {
  const void *x, *weight;
  void *y, *roots;
  int64_t rows, length;
  double epsilon;
};
cudaError_t launch_rms_norm(const RmsNorm& norm, int dtype, cudaStream_t stream);

// max(x, 0), or gelu by tanh, in place. Floating dtypes.
cudaError_t launch_activation(void* x, int64_t count, bool gelu, int dtype, cudaStream_t stream);

}  // namespace sconce::cuda
