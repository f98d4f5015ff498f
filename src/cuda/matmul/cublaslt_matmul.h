// Batched matrix products by cuBLASLt, with plans cached by problem. Operands may have any strides; those with neither
// packed rows nor packed columns are copied first, and such results afterwards. float32 uses TF32 only if the thread's
// DeviceStream allows it; half types sum in float32.
#pragma once

#include "sconce/tensor.h"

namespace sconce::cuda {

enum class Activation : int8_t { kNone, kRelu, kGelu };

// Applied to sums before rounding. Factors are float32 on the device, for float8 operands.
struct ProductScales {
  const Tensor* a = nullptr;  // null: no factors; else one value or, with by_row, one per row of a, packed
  const Tensor* b = nullptr;  // the same for columns of b
  const Tensor* result = nullptr;
  bool by_row = false;
  bool fast_sums = false;
  const Tensor* bias = nullptr;               // [n], packed, added to each row; the library restricts its dtype
  Activation activation = Activation::kNone;  // applied to sums with bias; gelu by tanh
};

// out [batch, m, n] = beta self + alpha a [batch, m, k] @ b [batch, k, n]; `self` (null: none) is already broadcast. a
// and b may have other dtypes than out: int8 into int32, half types into float32, float8. False if cuBLASLt has no
// algorithm; out is unchanged then.
bool try_product(const char* name, const Tensor& a, const Tensor& b, const Tensor* self, double beta, double alpha,
                 Tensor& out, const ProductScales* scales = nullptr);
// Throws kUnsupported instead of returning false.
void product(const char* name, const Tensor& a, const Tensor& b, const Tensor* self, double beta, double alpha,
             Tensor& out);

// Whether the ranges of memory that hold their elements meet.
bool overlap(const Tensor& a, const Tensor& b);

// Views [rows, columns] as a batch of one.
Tensor as_batch(const Tensor& t);

}  // namespace sconce::cuda
