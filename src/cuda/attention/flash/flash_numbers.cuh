// Element types and arithmetic of the attention kernels.
#pragma once

#include <cmath>

#include "src/cuda/device_code/warp_mma.cuh"

namespace sconce::cuda {

constexpr int kFlashThreads = 128, kCombineThreads = 64;
constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

__device__ __forceinline__ void store_two(float* to, float first, float second) {
  *reinterpret_cast<float2*>(to) = float2{first, second};
}
template <class T>
__device__ __forceinline__ void store_two(T* to, float first, float second) {
  *reinterpret_cast<uint32_t*>(to) = pack(first, second, T());
}

__device__ __forceinline__ float number_of(float v) { return v; }
__device__ __forceinline__ float number_of(__half v) { return __half2float(v); }
__device__ __forceinline__ float number_of(__nv_bfloat16 v) { return __bfloat162float(v); }

__device__ __forceinline__ float2 load_two(const float* from) { return *reinterpret_cast<const float2*>(from); }
__device__ __forceinline__ float2 load_two(const __half* from) {
  return __half22float2(*reinterpret_cast<const __half2*>(from));
}
__device__ __forceinline__ float2 load_two(const __nv_bfloat16* from) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(from));
}

// Over the four lanes of a group.
__device__ __forceinline__ float most_of_group(float v) {
  v = fmaxf(v, __shfl_xor_sync(0xFFFFFFFFu, v, 1));
  return fmaxf(v, __shfl_xor_sync(0xFFFFFFFFu, v, 2));
}
__device__ __forceinline__ float sum_of_group(float v) {
  v += __shfl_xor_sync(0xFFFFFFFFu, v, 1);
  return v + __shfl_xor_sync(0xFFFFFFFFu, v, 2);
}

// Over the eight lanes that have the same number in their groups.
__device__ __forceinline__ float most_of_column(float v) {
  v = fmaxf(v, __shfl_xor_sync(0xFFFFFFFFu, v, 4));
  v = fmaxf(v, __shfl_xor_sync(0xFFFFFFFFu, v, 8));
  return fmaxf(v, __shfl_xor_sync(0xFFFFFFFFu, v, 16));
}
__device__ __forceinline__ float sum_of_column(float v) {
  v += __shfl_xor_sync(0xFFFFFFFFu, v, 4);
  v += __shfl_xor_sync(0xFFFFFFFFu, v, 8);
  return v + __shfl_xor_sync(0xFFFFFFFFu, v, 16);
}
__device__ __forceinline__ float most_of_warp(float v) { return most_of_column(most_of_group(v)); }
__device__ __forceinline__ float sum_of_warp(float v) { return sum_of_column(sum_of_group(v)); }

__device__ __forceinline__ void store_four(float* to, const float4& v) { *reinterpret_cast<float4*>(to) = v; }
template <class T>
__device__ __forceinline__ void store_four(T* to, const float4& v) {
  *reinterpret_cast<uint2*>(to) = uint2{pack(v.x, v.y, T()), pack(v.z, v.w, T())};
}

}  // namespace sconce::cuda
