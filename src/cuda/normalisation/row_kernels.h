// Rows of packed elements: compared, normalised, for host code. dtype: c10::ScalarType; cudaErrorNotSupported for
// those without kernel.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

// a [batch, p, m], b [batch, r, m]: result [batch, p, r], the norm of each difference. float32 or float64.
struct Distances {
  const void *a, *b;
  int64_t batch, p, r, m;
  double norm;
};
cudaError_t launch_distances(const Distances& distances, void* result, int dtype, cudaStream_t stream);
// Gradients by a [batch, p, m] of gradients and distances [batch, p, r]; norm is not 0. Summed in one order.
cudaError_t launch_distance_slopes(const Distances& distances, const void* grads, const void* found, void* result,
                                   int dtype, cudaStream_t stream);
// Of the pairs of rows of a [n, m], each once: [n (n - 1) / 2]; and their gradients by a.
struct PairDistances {
  const void* a;
  int64_t n, m;
  double norm;
};
cudaError_t launch_pair_distances(const PairDistances& pairs, void* result, int dtype, cudaStream_t stream);
cudaError_t launch_pair_slopes(const PairDistances& pairs, const void* grads, const void* found, void* result,
                               int dtype, cudaStream_t stream);

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
