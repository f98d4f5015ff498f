// Attention in one kernel that keeps scores on the chip (flash_attention.cuh).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

// Strides in elements for batch, head and token; the elements of a head are contiguous. All of one dtype: q [batch,
// heads, queries, d], k [batch, kv_heads, keys, d], v [batch, kv_heads, keys, dv].
struct FlashAttention {
  const void *q, *k, *v;
  void* out;         // [batch, heads, queries, dv]
  const void* bias;  // null: none; of the dtype, added to scaled scores; strides by batch, head, query, key
  float* logsumexp;  // [batch, heads, logsumexp_rows]: infinity after the last query; 0 rows: not written
  int64_t q_strides[3], k_strides[3], v_strides[3], out_strides[3], bias_strides[4];
  int batch, heads, kv_heads, queries, keys, d, dv, logsumexp_rows;
  float scale;
  bool causal;
  int diagonal;           // causal: query i sees keys up to i + diagonal
  float empty_logsumexp;  // for a query that sees no key
  // Set by plan_flash():
  bool few;                  // use flash_few_kernel
  bool early;                // the device starts kernels early (early_start.cuh)
  int tiles;                 // 16 queries per warp times this; few: 8 per block times this
  int splits;                // parts of the keys; if more than one, partial results are written to:
  float* partial;            // [splits, batch, heads, queries, dv]
  float* partial_logsumexp;  // [splits, batch, heads, queries]
};

// Limits of a device.
struct FlashDevice {
  int multiprocessors, shared_bytes;  // shared_bytes: the most per block
  int capability = 0;                 // 90 for 9.0
};

// Whether to try cuDNN first. Its kernels use Hopper's and Blackwell's own matrix instructions and win on large
// problems, but planning a shape takes tens of milliseconds. Depends on the problem alone, so equal problems give equal
// bits. Not for a bias with logsumexp: cuDNN returns another value for a query that sees no key.
bool prefers_dnn(const FlashAttention& a, int dtype, const FlashDevice& device);
// Runs on the current stream. False, having done nothing, if cuDNN is absent or has no kernel. kDevice, kOutOfMemory.
bool launch_dnn_attention(const FlashAttention& a, int dtype, int device);

// If several heads with one query share a key head, makes them queries of one head, so that keys are read once.
void pack_heads(FlashAttention& a);

// Divides the work so that it fills the device; launches nothing. False if there is no kernel. Requirements: float32,
// float16 or bfloat16 (dtype: c10::ScalarType), up to 256 elements per head in whole 16-byte units, rows (of a
// contiguous bias too) at multiples of 16 bytes, enough shared memory.
bool plan_flash(FlashAttention& a, int dtype, const FlashDevice& device);
cudaError_t launch_flash(const FlashAttention& a, int dtype, cudaStream_t stream);

}  // namespace sconce::cuda
