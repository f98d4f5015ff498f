// Distances between packed rows, for host code. dtype: c10::ScalarType; cudaErrorNotSupported for others
// than stated.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

// For a [batch, p, m] and b [batch, r, m]: result [batch, p, r] holds the norm of each difference. float32 or float64.
struct Distances {
  const void *a, *b;
  int64_t batch, p, r, m;
  double norm;
};
cudaError_t launch_distances(const Distances& distances, void* result, int dtype, cudaStream_t stream);
// The gradient with respect to a [batch, p, m], from gradients and distances [batch, p, r]. norm is not 0. Fixed order.
cudaError_t launch_distance_slopes(const Distances& distances, const void* grads, const void* found, void* result,
                                   int dtype, cudaStream_t stream);
// Distances between all pairs of rows of a [n, m], each pair once: [n (n - 1) / 2]; and their gradients by a.
struct PairDistances {
  const void* a;
  int64_t n, m;
  double norm;
};
cudaError_t launch_pair_distances(const PairDistances& pairs, void* result, int dtype, cudaStream_t stream);
cudaError_t launch_pair_slopes(const PairDistances& pairs, const void* grads, const void* found, void* result,
                               int dtype, cudaStream_t stream);

}  // namespace sconce::cuda
