// Indexing with tensors. Matches aten::index.Tensor and index_put (torch 2.15, CPU): index tensors of int64, int32 or
// bool/uint8 masks, negative indices count from the end, kInvalidArgument where one is out of bounds.
#pragma once

#include <span>

#include "sconce/tensor.h"
#include "src/tensor/arguments.h"

namespace sconce::cpu {

// self[indices]; null or missing indices take their dimension whole. Strides as at::TensorIterator gives them.
Tensor index_Tensor(const Tensor& self, OptTensorList indices);

// A clone of self in which self[indices] = values, or += where accumulate. values broadcast and have self's dtype.
// Of duplicate positions the last in memory order wins, as in ATen on one thread, whatever the number of threads.
Tensor index_put(const Tensor& self, OptTensorList indices, const Tensor& values, bool accumulate);
// The same into `out`, which may be self.
void index_put_out(Tensor& out, const Tensor& self, std::span<const Tensor* const> indices, const Tensor& values,
                   bool accumulate);

}  // namespace sconce::cpu
