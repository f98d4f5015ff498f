// Products of groups of rows, columns or steps. Matches aten::_grouped_mm, torch 2.15.
#pragma once

#include <optional>

#include "sconce/tensor.h"

namespace sconce::cpu {

// float32, float16 or bfloat16, one dtype; strides as ATen asks for: one of the last two 1, the other a multiple of 16
// bytes. Group g covers [offs[g-1], offs[g]) of the dimension that the groups share, offs int32 [G]:
//   self [T, K], mat2 [G, K, N]: rows,    result [T, N]
//   self [M, T], mat2 [T, N]:    steps,   result [G, M, N]
//   self [G, M, K], mat2 [K, T]: columns, result [M, T]
//   self [G, M, K], mat2 [G, K, N], without offs: [G, M, N]
// Rows of the result are a multiple of 16 bytes apart; what no group covers is zero (undefined in ATen).
Tensor _grouped_mm(const Tensor& self, const Tensor& mat2, const Tensor* offs, const Tensor* bias,
                   std::optional<DType> out_dtype);

}  // namespace sconce::cpu
