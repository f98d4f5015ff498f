// Attention's softmax on a device, for host code. The caller owns all memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "src/cuda/attention/attention_dropout.h"

namespace sconce::cuda {

// Scales, masks, exponentiates and normalises float scores [rows, columns] in place, and writes their logsumexp.
struct SoftmaxRows {
  int64_t rows, columns;
  int64_t queries;  // rows per head
  float scale;
  bool causal;
  int64_t diagonal;  // causal: query i sees keys up to i + diagonal
  bool bounded;      // query i sees keys from i + lowest on
  int64_t lowest;
  float empty_logsumexp;  // for a row that sees no key
  const float* bias;      // null: none; strides in elements by batch, head, query, key
  int64_t heads, bias_strides[4];
  int64_t first_head;   // counted over all batches; row 0 belongs to it
  const float* slopes;  // of ALiBi; null: none; strides by batch, head
  int64_t slope_strides[2];
  bool slope_by_key;  // adds slope * key, else -slope * |query + slope_base - key|
  int64_t slope_base;
  void* halves;  // if not null, gets the probabilities instead, as half_type: float16 (5) or bfloat16 (15)
  int half_type;
  AttentionDropout dropout;  // applied to the normalised probabilities
};
void launch_softmax(const SoftmaxRows& rows, float* scores, float* logsumexp, cudaStream_t stream);

}  // namespace sconce::cuda
