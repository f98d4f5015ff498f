// Attention over [B, T, H, D], or over sequences of several lengths, one behind the other in [tokens, H, D] or
// [1, tokens, H, D]: they begin where cumulative lengths (int32 or int64, one more than sequences) say, which the host
// reads, with a wait.
#pragma once

#include "src/cuda/attention/attention.h"
#include "src/cuda/attention/quantised_attention.h"

namespace sconce::cuda {

struct SequenceCall {
  const char* name;
  const Tensor& query;
  const Tensor& key;
  const Tensor& value;
  const Tensor* cumulative_q = nullptr;  // null: [B, T, H, D]
  const Tensor* cumulative_k = nullptr;
  const Tensor* used_keys = nullptr;  // null: all of a sequence's; else how many, of those between its bounds
  const Tensor* pages = nullptr;      // int32 [sequences, most]: key and value are [pages, tokens a page, H, D], and
                                      // a sequence has these, one behind the other; of queries of several lengths
  const Tensor* bias = nullptr;       // [B, H, T, T] of one length only
  const Tensor* slopes = nullptr;     // ALiBi's, float32 [H] or [sequences, H]
  Descale descale = {};               // of float8: [sequences, heads of keys]
  int64_t most_queries = 0, most_keys = 0;
  AttentionSight sight = {};
  AttentionDropout dropout = {};
  std::optional<double> scale = std::nullopt;
  float empty_logsumexp = 0;
};

// How sums of exponentials lie: [B, H, T], of several lengths [H, tokens]; or [B, H, rows], infinity behind the last.
struct SequenceSums {
  bool packed = true;
  int64_t rows = 0;
};

// into: where the result goes; null: a tensor of its own, in the order of the query's dimensions where packed,
// row-major else.
Attention attend_sequences(const SequenceCall& call, const SequenceSums& sums, const Tensor* into);
// bias: its gradient, too. row_major: gradients are, else in the order of the dimensions of what they are of.
Gradients sequence_gradients(const SequenceCall& call, const Tensor& grad, const Tensor& logsumexp, bool of_bias,
                             bool row_major);

}  // namespace sconce::cuda
