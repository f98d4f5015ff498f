// Casts between the steps of a pipeline: elements of one dtype as another, as PyTorch's Tensor.to does.
#pragma once

#include "sconce/tensor.h"

namespace sconce::server {

// Booleans, integers, float16, bfloat16, float32 and float64.
bool is_castable(DType dtype) noexcept;

// A contiguous tensor of the same sizes on the host. Floats become integers by truncation; numbers that the integer
// type cannot hold become its nearest limit, and NaN becomes 0, where PyTorch's result is undefined. from: a host
// tensor; both dtypes must be castable. kOutOfMemory.
Tensor cast(const Tensor& from, DType dtype);

}  // namespace sconce::server
