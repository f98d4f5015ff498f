// Matrix instructions of a warp (compute capability 8.0) and asynchronous copies into shared memory.
// Lane l of a warp is in group g = l / 4 with number t = l % 4. 16-bit operands come as pairs in a word.
//   A [16, 16]: a[0] is (g, 2t), a[1] (g + 8, 2t), a[2] (g, 2t + 8), a[3] (g + 8, 2t + 8)
//   B [16, 8]:  b[0] is (2t, g), b[1] (2t + 8, g)
//   C [16, 8]:  c[0], c[1] are (g, 2t), (g, 2t + 1); c[2], c[3] the same of row g + 8
// For float32, A [16, 8] is (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4) and B [8, 8] is (t, g), (t + 4, g).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace sconce::cuda {

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Copies the first `bytes` of 16 bytes and fills the rest with zeros.
__device__ __forceinline__ void copy_up_to_16(void* shared, const void* global, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void copy_16(void* shared, const void* global, bool read) {
  copy_up_to_16(shared, global, read ? 16 : 0);
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until all but the newest `kLeft` groups of this thread have arrived.
template <int kLeft>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

// Loads four matrices [8, 8] of 16-bit elements; lane l passes the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void load_matrices(uint32_t (&m)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void load_matrices_turned(uint32_t (&m)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(shared_address(row))
               : "memory");
}

// Transposes an [8, 8] matrix of 16-bit elements, of which lane l holds columns 2t and 2t + 1 of row g.
__device__ __forceinline__ uint32_t turn(uint32_t two) {
  uint32_t turned;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(two));
  return turned;
}

// c += a b
__device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, __half) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                                         __nv_bfloat16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// Words hold float32; tensor cores use the upper 19 bits.
__device__ __forceinline__ void multiply_tf32(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// 2 to the power of v; a subnormal result becomes 0.
__device__ __forceinline__ float power_of_2(float v) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(v));
  return result;
}

__device__ __forceinline__ uint32_t bits_of(float v) { return __float_as_uint(v); }
// high is the part of v that multiply_tf32 uses, low the remainder.
__device__ __forceinline__ void split(float v, uint32_t& high, uint32_t& low) {
  high = bits_of(v) & 0xFFFFE000u;
  low = bits_of(v - __uint_as_float(high));
}

// Packs two numbers into a word of 16-bit elements.
__device__ __forceinline__ uint32_t pack(float first, float second, __half) {
  const __half2 two = __floats2half2_rn(first, second);
  return *reinterpret_cast<const uint32_t*>(&two);
}
__device__ __forceinline__ uint32_t pack(float first, float second, __nv_bfloat16) {
  const __nv_bfloat162 two = __floats2bfloat162_rn(first, second);
  return *reinterpret_cast<const uint32_t*>(&two);
}

}  // namespace sconce::cuda
