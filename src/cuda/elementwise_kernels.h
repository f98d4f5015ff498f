// Operators on packed elements, for host code. dtype: c10::ScalarType; cudaErrorNotSupported for those without kernel.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

enum class Binary { kAdd, kMultiply, kPower };

// out = a OP b, a + scale * b; null for an operand: the number in its place. All of one dtype.
struct BinaryCall {
  Binary op;
  int dtype;
  const void *a, *b;
  double number, scale;
  void* out;
  int64_t count;
};
cudaError_t launch_binary(const BinaryCall& call, cudaStream_t stream);

// Of complex numbers real ones.
cudaError_t launch_abs(int dtype, const void* in, void* out, int64_t count, cudaStream_t stream);
cudaError_t launch_angle(int dtype, const void* in, void* out, int64_t count, cudaStream_t stream);
// Of float32 or float64.
cudaError_t launch_polar(int dtype, const void* lengths, const void* angles, void* out, int64_t count,
                         cudaStream_t stream);

// Distances [batch, p, r] of rows [batch, p, m] and [batch, r, m], packed float32 or float64.
cudaError_t launch_distances(int dtype, const void* x1, const void* x2, void* out, int64_t batch, int64_t p, int64_t r,
                             int64_t m, double norm, cudaStream_t stream);

}  // namespace sconce::cuda
