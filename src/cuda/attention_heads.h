// Tensors of attention [B, H, T, D] as batches of matrices, a head each.
#pragma once

#include "sconce/tensor.h"

namespace sconce::cuda {

Tensor as_float(const Tensor& t, IntSpan sizes);
// All heads of all batches one stride apart: as it is, or packed.
Tensor by_head(const Tensor& t);
// Heads of keys that several heads of queries share are repeated. kInvalidArgument where they do not fit.
Tensor per_head(const Tensor& t, int64_t heads, DType dtype);
// Heads [first, first + count) of a tensor that by_head() gave, as matrices.
Tensor heads_of(const Tensor& t, int64_t first, int64_t count, bool transposed = false);

}  // namespace sconce::cuda
