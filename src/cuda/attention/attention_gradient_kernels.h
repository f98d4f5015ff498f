// What gradients of attention need beside products, for host code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "src/cuda/attention/attention_dropout.h"

namespace sconce::cuda {

// Rows of scores [rows, columns] (float32, unscaled) and of the gradients of probabilities become the probabilities,
// less what is dropped, and the gradients of scaled scores, in `type`: c10::ScalarType float16, bfloat16 or float32.
// Both results may be where the operands are where they are float32.
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
  int64_t first_head;      // of all batches: row 0 is its first
  const float* logsumexp;  // of head h, query q: [h * logsumexp_rows + q]
  int64_t logsumexp_rows;
  int type;
  AttentionDropout dropout;
};
void launch_gradient_rows(const GradientRows& rows, const float* scores, const float* gradients, void* probabilities,
                          void* score_gradients, cudaStream_t stream);

// to[i] = sum over k < count of from[i / inner][k][i % inner], float32 sums; types as above.
void launch_sum_groups(int type, const void* from, void* to, int64_t outer, int64_t count, int64_t inner,
                       cudaStream_t stream);

}  // namespace sconce::cuda
