// Attention over [B, T, H, D], or over sequences of several lengths packed in [tokens, H, D] or [1, tokens, H, D].
// Cumulative lengths (int32 or int64, one more than sequences) say where each begins; the host waits to read them.
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
  const Tensor* used_keys = nullptr;  // null: all keys of a sequence; else how many of them
  const Tensor* pages = nullptr;      // int32 [sequences, most]: the pages of each sequence, in order;
                                      // key and value are [pages, tokens per page, H, D]; only with several lengths
  const Tensor* bias = nullptr;       // [B, H, T, T]; only with one length
  const Tensor* slopes = nullptr;     // of ALiBi, float32 [H] or [sequences, H]
  Descale descale = {};               // for float8: [sequences, key heads]
  int64_t most_queries = 0, most_keys = 0;
  AttentionSight sight = {};
  AttentionDropout dropout = {};
  std::optional<double> scale = std::nullopt;
  float empty_logsumexp = 0;
};

// Layout of logsumexp: [B, H, T] or, with several lengths, [H, tokens]. Not packed: [B, H, rows], padded with infinity.
struct SequenceSums {
  bool packed = true;
  int64_t rows = 0;
};

// into: where to write the result; null: a new tensor, ordered as the query if packed, else row-major.
Attention attend_sequences(const SequenceCall& call, const SequenceSums& sums, const Tensor* into);
// of_bias: also compute the bias's gradient. row_major: how gradients lie, else ordered as their operands.
Gradients sequence_gradients(const SequenceCall& call, const Tensor& grad, const Tensor& logsumexp, bool of_bias,
                             bool row_major);

}  // namespace sconce::cuda
