// Tensors of attention [B, H, T, D] as batches of matrices, a head each.
#pragma once

#include "sconce/tensor.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {

Tensor as_float(const Tensor& t, IntSpan sizes);
// All heads of all batches one stride apart: as it is, or packed.
Tensor by_head(const Tensor& t);
// Heads of keys that several heads of queries share are repeated. kInvalidArgument where they do not fit.
Tensor per_head(const Tensor& t, int64_t heads, DType dtype);
// Heads [first, first + count) of a tensor that by_head() gave, as matrices.
Tensor heads_of(const Tensor& t, int64_t first, int64_t count, bool transposed = false);

// What the scores [B, H, Tq, Tk] of a call are made with, but for their scale: sizes, which keys a query sees, dropout
// and the bias, whose float32 the rows point into is returned.
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
