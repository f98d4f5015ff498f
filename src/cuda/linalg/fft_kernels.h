// Completes the results of cuFFT, for host code. dtype: c10::ScalarType of the real parts (5, 6, 7).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

void launch_scale(void* reals, int dtype, int64_t count, double factor, cudaStream_t stream);

// In a transform of real numbers, elements from `known` on in the last dimension are conjugates of those at positions
// mirrored in all transformed dimensions. Strides count complex numbers; dimension 0 is the one with the known part.
inline constexpr int kMaxFftRank = 16;
struct Mirror {
  int rank;
  int64_t known;
  int64_t sizes[kMaxFftRank], strides[kMaxFftRank];
  bool transformed[kMaxFftRank];
};
void launch_mirror(const Mirror& mirror, void* numbers, int dtype, cudaStream_t stream);

}  // namespace sconce::cuda
