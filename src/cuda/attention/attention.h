// Attention over tensors [B, H, T, D], for the operators of attention_abi.cpp and sequence_attention_abi.cpp.
#pragma once

#include <cstdint>
#include <optional>

#include "sconce/tensor.h"
#include "src/cuda/attention/attention_dropout.h"

namespace sconce::cuda {

struct Attention {
  Tensor out;        // [B, H, T, D]
  Tensor logsumexp;  // [B, H, T] float32
};

enum class OutLayout {
  kByToken,  // [B, T, H, D] in memory
  kOfQuery   // in the order of the query's dimensions
};

// The keys that query i sees: if causal, up to i + base + right; if bounded, from i + base - left on. The base is 0
// or, with from_end, aligns the last query with the last key.
struct AttentionSight {
  bool causal = false, from_end = false, bounded = false;
  int64_t right = 0, left = 0;
  int64_t base(int64_t queries, int64_t keys) const { return from_end ? keys - queries : 0; }
};

struct AttentionCall : AttentionSight {
  const char* name;
  const Tensor* bias = nullptr;
  const Tensor* slopes = nullptr;  // ALiBi's, float32 [H] or [B, H]
  AttentionDropout dropout = {};
  std::optional<double> scale = std::nullopt;
  OutLayout layout = OutLayout::kByToken;
  int64_t logsumexp_rows = 0;    // per head; infinity after the last query
  float empty_logsumexp = 0;     // for a query that sees no key
  const Tensor* into = nullptr;  // where to write the result, of its sizes; null: new memory

  explicit AttentionCall(const char* operator_name) : name(operator_name) {}
};
Attention attend(const AttentionCall& call, const Tensor& query, const Tensor& key, const Tensor& value);

struct GradientCall : AttentionSight {
  const char* name;
  const Tensor& grad;
  const Tensor& query;
  const Tensor& key;
  const Tensor& value;
  const Tensor& logsumexp;  // [B, H, rows]
  const Tensor* bias = nullptr;
  AttentionDropout dropout = {};
  std::optional<double> scale = std::nullopt;
  bool by_token = false;  // gradients lie as [B, T, H, D] in memory, else as their operands do
  bool of_bias = false;

  GradientCall(const char* operator_name, const Tensor& of, const Tensor& q, const Tensor& k, const Tensor& v,
               const Tensor& sums)
      : name(operator_name), grad(of), query(q), key(k), value(v), logsumexp(sums) {}
};
struct Gradients {
  Tensor query, key, value, bias;
};
Gradients attention_gradients(const GradientCall& call);

// Draws from the generator of the query's device and advances it; kNone if p is 0. Throws kInvalidArgument for a bad p.
AttentionDropout draw_flash_dropout(const char* name, double p, int64_t batch, int64_t heads);
// Takes `count` numbers.
AttentionDropout draw_efficient_dropout(const char* name, double p, int64_t count, int64_t heads, int64_t queries,
                                        int64_t keys);
// Repeats an earlier draw from its state: [seed, offset], or one tensor for each. Waits for the device.
AttentionDropout flash_dropout(const char* name, double p, int64_t heads, const Tensor& state);
AttentionDropout efficient_dropout(const char* name, double p, int64_t heads, int64_t queries, int64_t keys,
                                   const Tensor& seed, const Tensor& offset);
// The state that operators return for the backward call. If p is 0 it is uninitialised, as PyTorch's is.
Tensor flash_state(const AttentionDropout& dropout, Device device);
struct EfficientState {
  Tensor seed, offset;
};
EfficientState efficient_state(const AttentionDropout& dropout, Device device);

}  // namespace sconce::cuda
