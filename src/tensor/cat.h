// Matches aten::cat (torch 2.15, CPU). Tensors of one device, which may be another.
#pragma once

#include "sconce/tensor.h"
#include "src/tensor/arguments.h"

namespace sconce {

namespace cpu {
// Tensors of one shape but for `dim`, any dtypes; 1-D tensors of no elements are skipped. Memory order as ATen chooses:
// channels-last where all inputs are, else row-major.
Tensor cat(TensorList tensors, int64_t dim);
}  // namespace cpu

}  // namespace sconce
