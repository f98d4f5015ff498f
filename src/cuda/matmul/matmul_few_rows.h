// Products of few rows by our own kernels, if these are faster than the library's.
#pragma once

#include "sconce/tensor.h"

namespace sconce::cuda {

// out [m, n] = alpha a [m, k] @ b [k, n] + bias [n] (null: none). False, with out unchanged, if the library should do
// it: neither m nor n is at most 8, the dtype is not float16, bfloat16 or float32, or lines of k are not contiguous
// and whole 16 bytes in both operands. All tensors are on one device, which is the current one; shapes and dtypes have
// been checked.
bool try_few_rows(const Tensor& a, const Tensor& b, const Tensor* bias, double alpha, Tensor& out);

}  // namespace sconce::cuda
