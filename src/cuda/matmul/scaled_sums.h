// Shared by products with scales, of groups and with packed weights.
#pragma once

#include "src/cuda/matmul/cublaslt_matmul.h"
#include "src/cuda/matmul/matmul_kernels.h"

namespace sconce::cuda {

// float8 types of products with scales.
bool is_scaled_float8(DType dtype);
bool aligned(const Tensor& t, size_t bytes);
// A vector as a kernel's argument.
PerLine per_line(const Tensor& t, int64_t stride);

// a [m, k] times b [k, n] as float32, whatever their dtypes.
Tensor sums_of(const char* name, const Tensor& a, const Tensor& b);
// out = sums * by_row * by_column + bias, times factor.
void store(const Tensor& sums, const PerLine& by_row, const PerLine& by_column, const PerLine& bias,
           const PerLine& factor, Tensor& out);
// The same by cuBLASLt in one step, which needs float8 sizes that are multiples of 16 and aligned addresses; else
// false.
bool try_scaled(const char* name, const Tensor& a, const Tensor& b, const ProductScales& scales, Tensor& out);

}  // namespace sconce::cuda
