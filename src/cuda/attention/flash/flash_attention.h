// Attention in one kernel: scores stay on the chip (flash_attention.cuh).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

// Strides in elements, in the order batch, head, token; heads of a token and their elements are next to each other.
// q [batch, heads, queries, d], k [batch, kv_heads, keys, d], v [batch, kv_heads, keys, dv], of one dtype.
struct FlashAttention {
  const void *q, *k, *v;
  void* out;         // [batch, heads, queries, dv]
  const void* bias;  // null: none; of the dtype, added to scaled scores; strides by batch, head, query, key
  float* logsumexp;  // [batch, heads, logsumexp_rows]: infinity behind the last query; of no rows, nothing is written
  int64_t q_strides[3], k_strides[3], v_strides[3], out_strides[3], bias_strides[4];
  int batch, heads, kv_heads, queries, keys, d, dv, logsumexp_rows;
  float scale;
  bool causal;
  int diagonal;           // causal: query i sees keys up to i + diagonal
  float empty_logsumexp;  // of a query that sees nothing
  // Of plan_flash():
  bool few;                  // flash_few_kernel
  int tiles;                 // times 16 queries a warp; few: times 8 a block
  int splits;                // parts of the keys; more than one: partial results go to these
  float* partial;            // [splits, batch, heads, queries, dv]
  float* partial_logsumexp;  // [splits, batch, heads, queries]
};

// What a device has.
struct FlashDevice {
  int multiprocessors, shared_bytes;  // the latter a block, at most
  int capability = 0;                 // 90 for 9.0
};

// Whether cuDNN is to be asked first: it has kernels of Hopper's and Blackwell's own matrix instructions. They win
// where there is much to multiply, and every shape must be planned for tens of milliseconds once. A matter of the
// problem alone, so that the same problem always gives the same bits. Not asked for the logarithms of sums with a bias:
// what it has for a query that sees nothing is its own.
bool prefers_dnn(const FlashAttention& a, int dtype, const FlashDevice& device);
// On the current stream. False, and nothing done, where cuDNN is not there or has no kernel. kDevice, kOutOfMemory.
bool launch_dnn_attention(const FlashAttention& a, int dtype, int device);

// One query a head, and several heads for one of keys: these heads as queries of one head, so that keys are read once.
void pack_heads(FlashAttention& a);

// How the work is cut so that the device is full. False where there is no kernel: it takes float32, float16 or bfloat16
// (dtype: c10::ScalarType), up to 256 elements a head in whole 16 bytes, rows (of a bias too, whose elements are next
// to each other) at multiples of 16 bytes, and enough shared memory. Launches nothing.
bool plan_flash(FlashAttention& a, int dtype, const FlashDevice& device);
cudaError_t launch_flash(const FlashAttention& a, int dtype, cudaStream_t stream);

}  // namespace sconce::cuda
