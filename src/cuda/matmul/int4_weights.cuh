// Unpacks 4-bit weights, laid out as for launch_unpack_int4(), two at a time.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace sconce::cuda {

// A scale and its zero, each duplicated into a pair.
struct Int4Scale {
  __device__ __forceinline__ explicit Int4Scale(__nv_bfloat162 both)
      : scale(__low2bfloat162(both)), zero(__high2bfloat162(both)) {}
  __nv_bfloat162 scale, zero;
};

// The nibbles of a word, from the lowest, are weights 0, 2, 4, 6, 1, 3, 5, 7, so the two of pair j are 16 bits apart.
// Put into the low bits of the bfloat16 128, a nibble q makes 128 + q.
__device__ __forceinline__ __nv_bfloat162 int4_pair(uint32_t word, int j, const Int4Scale& by) {
  const uint32_t raised = (word >> 4 * j & 0x000F000Fu) | 0x43004300u;
  const __nv_bfloat162 offset = __float2bfloat162_rn(136);  // 128 + 8
  return __hfma2(__hsub2(*reinterpret_cast<const __nv_bfloat162*>(&raised), offset), by.scale, by.zero);
}

}  // namespace sconce::cuda
