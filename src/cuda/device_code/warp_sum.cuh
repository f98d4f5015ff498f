// warp_sum() adds a value over all 32 threads of a warp and returns the sum to each.
#pragma once

namespace sconce::cuda {

template <class C>
__device__ C warp_sum(C value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xFFFFFFFFu, value, offset);
  return value;
}

}  // namespace sconce::cuda
