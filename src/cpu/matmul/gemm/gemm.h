// Matrix products: C = alpha * A @ B + beta * self, over a batch.
//
// A is [batch, m, k], B [batch, k, n], C and self [batch, m, n], each with any strides (0 if broadcast; C never). All
// operands have one dtype: the floats, the small floats (sums in float), complex of float and double, and uint8 to
// int64, whose arithmetic wraps. If `self` is null or beta is 0, self is not read, so its NaNs do not count. C may be
// self itself; it overlaps neither A nor B.
#pragma once

#include <cstdint>

#include "sconce/dtype.h"
#include "sconce/storage.h"

namespace sconce {

struct MatrixView {
  const void* data = nullptr;
  int64_t batch_stride = 0, row_stride = 0, column_stride = 0;  // in elements
};

struct MatrixProduct {
  DType dtype;
  int64_t batch = 1, m, n, k;
  MatrixView a, b, self;
  void* c;
  int64_t c_batch_stride = 0, c_row_stride, c_column_stride;
  double alpha = 1, beta = 1;
  // If B is a constant: its storage. B is then repacked once, if it is small, and kept with the storage.
  Storage* b_constant = nullptr;
};

// Runs on up to kernel_threads() threads. kUnsupported "NAME: not implemented for 'dtype'", kOutOfMemory.
void matrix_product(const char* name, const MatrixProduct& product);

}  // namespace sconce
