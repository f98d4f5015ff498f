// Products of batches of matrices by cuBLASLt: plans kept by problem, operands of any strides (those that are neither
// rows nor columns packed are copied first, as is a result). float32 in TF32 only where the lane allows it, half types
// with sums in float32.
#pragma once

#include <optional>

#include "sconce/tensor.h"

namespace sconce::cuda {

enum class Activation : int8_t { kNone, kRelu, kGelu };

// What is done to sums before they are rounded. Factors are of float8 operands, float32 on the device.
struct ProductScales {
  const Tensor* a = nullptr;  // null: neither has one; one value; or with by_row one for each row of a, packed
  const Tensor* b = nullptr;  // the same for columns of b
  const Tensor* result = nullptr;
  bool by_row = false;
  bool fast_sums = false;
  const Tensor* bias = nullptr;               // [n] of the library's choice of dtype, packed: added to each row
  Activation activation = Activation::kNone;  // of sums with bias; gelu by tanh
};

// out [batch, m, n] = beta self + alpha a [batch, m, k] @ b [batch, k, n]; `self` (null: none) broadcast already.
// a and b may have other dtypes than out: int8 into int32, half types into float32, float8. False where cuBLASLt has
// nothing for them; out is as it was, then.
bool try_product(const char* name, const Tensor& a, const Tensor& b, const Tensor* self, double beta, double alpha,
                 Tensor& out, const ProductScales* scales = nullptr);
// kUnsupported in place of false.
void product(const char* name, const Tensor& a, const Tensor& b, const Tensor* self, double beta, double alpha,
             Tensor& out);

// [rows, columns] as a batch of one.
Tensor as_batch(const Tensor& t);

}  // namespace sconce::cuda
