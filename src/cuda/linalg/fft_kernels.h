// What cuFFT leaves to do, for host code. dtype: c10::ScalarType of the real parts (5, 6, 7).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

void launch_scale(void* reals, int dtype, int64_t count, double factor, cudaStream_t stream);

// Complex numbers of a transform of real ones: those of the last dimension from `known` on are the conjugates of those
// at the mirrored places of all transformed dimensions. Strides in complex numbers; [0] is the dimension with the known
// part.
inline constexpr int kMaxFftRank = 16;
struct Mirror {
  int rank;
  int64_t known;
  int64_t sizes[kMaxFftRank], strides[kMaxFftRank];
  bool transformed[kMaxFftRank];
};
void launch_mirror(const Mirror& mirror, void* numbers, int dtype, cudaStream_t stream);

}  // namespace sconce::cuda
