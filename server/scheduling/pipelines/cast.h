// Casts between the steps of a pipeline: elements are converted from one dtype to another like PyTorch's Tensor.to.
#pragma once

#include "sconce/tensor.h"

namespace sconce::server::scheduling {

// True for booleans, integers, float16, bfloat16, float32 and float64.
bool is_castable(DType dtype) noexcept;

// Returns a contiguous host tensor of the same sizes. Floats become integers by truncation; a number outside the range
// of the integer type becomes the nearest limit, and NaN becomes 0, where PyTorch's result is undefined. from: a host
// tensor; both dtypes must be castable. kOutOfMemory.
Tensor cast(const Tensor& from, DType dtype);

}  // namespace sconce::server::scheduling
