// Kernels for gradients of attention besides products, for host code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "src/cuda/attention/attention_dropout.h"

namespace sconce::cuda {

// From scores [rows, columns] (float32, unscaled) and gradients of probabilities, computes the probabilities after
// dropout and the gradients of the scaled scores. `type` of both: c10::ScalarType float16, bfloat16 or float32. float32
// results may overwrite the operands.
struct GradientRows {
  int64_t rows, columns;
  int64_t queries;  // rows per head
  float scale;
  bool causal;
  int64_t diagonal;
  bool bounded;  // query i sees keys from i + lowest on
  int64_t lowest;
  const float* bias;  // null: none; strides in elements by batch, head, query, key
  int64_t heads, bias_strides[4];
  int64_t first_head;      // counted over all batches; row 0 belongs to it
  const float* logsumexp;  // head h, query q: [h * logsumexp_rows + q]
  int64_t logsumexp_rows;
  int type;
  AttentionDropout dropout;
};
void launch_gradient_rows(const GradientRows& rows, const float* scores, const float* gradients, void* probabilities,
                          void* score_gradients, cudaStream_t stream);

// to[i] = sum over k < count of from[i / inner][k][i % inner], summed in float32; types as above.
void launch_sum_groups(int type, const void* from, void* to, int64_t outer, int64_t count, int64_t inner,
                       cudaStream_t stream);

}  // namespace sconce::cuda
