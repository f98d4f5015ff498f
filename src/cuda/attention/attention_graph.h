// Attention as a graph of cuDNN's operations, which has a kernel for the whole of it on Hopper and later.
#pragma once

#include <memory>

#include "src/cuda/cudnn/dnn_graph.h"

namespace sconce::cuda {

// Strides in elements by batch, head and token; elements of a head are next to each other. Half types.
struct AttentionForm {
  cudnnDataType_t type;
  int64_t batch, heads, kv_heads, queries, keys, d, dv;
  int64_t q_strides[3], k_strides[3], v_strides[3], out_strides[3];
  int64_t logsumexp_rows;  // [batch, heads, logsumexp_rows] in memory, of which `queries` are written; 0: none
  float scale;
  bool causal;  // query i sees keys up to i
  // Added to scaled scores, of the type: by batch, head and query, 0 where all have the same.
  bool biased;
  int64_t bias_strides[3];
};

// Runs take q, k, v, out, the bias if there is one and, where there are rows for it, logsumexp. Not planned yet.
std::unique_ptr<DnnGraph> attention_graph(const AttentionForm& form);

}  // namespace sconce::cuda
