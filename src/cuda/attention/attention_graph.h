// Attention as a graph of cuDNN's operations; on Hopper and later cuDNN has one kernel for all of it.
#pragma once

#include <memory>

#include "src/cuda/cudnn/dnn_graph.h"

namespace sconce::cuda {

// Half types. Strides in elements for batch, head and token; the elements of a head are contiguous.
struct AttentionForm {
  cudnnDataType_t type;
  int64_t batch, heads, kv_heads, queries, keys, d, dv;
  int64_t q_strides[3], k_strides[3], v_strides[3], out_strides[3];
  int64_t logsumexp_rows;  // memory [batch, heads, logsumexp_rows], of which `queries` are written; 0: none
  float scale;
  bool causal;  // query i sees keys up to i
  // A bias of `type`, added to scaled scores. Strides for batch, head and query; 0 broadcasts.
  bool biased;
  int64_t bias_strides[3];
};

// Makes the graph without planning it. Runs take q, k, v, out, then the bias and logsumexp if there are any.
std::unique_ptr<DnnGraph> attention_graph(const AttentionForm& form);

}  // namespace sconce::cuda
