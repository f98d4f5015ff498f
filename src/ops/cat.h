// Matches aten::cat (torch 2.15, CPU).
#pragma once

#include "sconce/tensor.h"
#include "src/ops/arguments.h"

namespace sconce {

// The dtype to which ATen promotes these two for tensors with dimensions (c10::promoteTypes). kUnsupported for float8
// and wide unsigned types that are not promoted.
DType promote_types(DType a, DType b);

namespace cpu {
// Tensors of one shape but for `dim`, any dtypes; 1-D tensors of no elements are skipped. Memory order as ATen chooses:
// channels-last where all inputs are, else row-major.
Tensor cat(TensorList tensors, int64_t dim);
}  // namespace cpu

}  // namespace sconce
