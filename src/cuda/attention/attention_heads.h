// Tensors of attention [B, H, T, D] as batches of matrices, one per head.
#pragma once

#include "sconce/tensor.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {

// kInvalidArgument for operands that do not fit each other.
void check_attention(const char* name, const Tensor& query, const Tensor& key, const Tensor& value);
Tensor as_float(const Tensor& t, IntSpan sizes);
// Makes all heads of all batches lie one stride apart: returns t or a packed copy.
Tensor by_head(const Tensor& t);
// Repeats key heads that several query heads share. Throws kInvalidArgument if the counts do not fit.
Tensor per_head(const Tensor& t, int64_t heads, DType dtype);
// Heads [first, first + count) of by_head()'s result, as matrices.
Tensor heads_of(const Tensor& t, int64_t first, int64_t count, bool transposed = false);

// Describes the scores [B, H, Tq, Tk] of a call except their scale: sizes, visible keys, dropout and bias. Returns the
// float32 bias that the rows point into.
template <class Rows, class Call>
Tensor describe_rows(Rows& rows, const Call& call, int64_t b, int64_t h, int64_t tq, int64_t tk) {
  rows.columns = tk;
  rows.queries = tq;
  rows.heads = h;
  rows.causal = call.causal;
  rows.diagonal = call.base(tq, tk) + call.right;
  rows.bounded = call.bounded;
  rows.lowest = call.base(tq, tk) - call.left;
  rows.dropout = call.dropout;
  if (!call.bias) return {};
  const int64_t sizes[] = {b, h, tq, tk};
  Tensor bias = expand(call.name, as_float(*call.bias, call.bias->sizes()), sizes);
  rows.bias = bias.template data_as<float>();
  for (int64_t i = 0; i < 4; ++i) rows.bias_strides[i] = bias.stride(i);
  return bias;
}

}  // namespace sconce::cuda
