// Indexing with tensors. Matches aten::index.Tensor and index_put (torch 2.15, CPU): index tensors of int64, int32 or
// bool/uint8 masks, negative indices count from the end, kInvalidArgument if one is out of bounds.
#pragma once

#include <span>

#include "sconce/tensor.h"

namespace sconce::cpu {

// index_put into `out`, which may be self.
void index_put_out(Tensor& out, const Tensor& self, std::span<const Tensor* const> indices, const Tensor& values,
                   bool accumulate);

}  // namespace sconce::cpu
