// Matrix products by oneDNN; onednn.h explains when they are used.
#pragma once

#include <cstdint>

#include "src/cpu/matmul/gemm/gemm.h"
#include "src/cpu/onednn/mkldnn_weight.h"
#include "src/cpu/onednn/onednn.h"

namespace sconce::onednn {

// Thresholds in multiplications; below them our kernels are faster.
constexpr double kProductFloat = 1 << 23, kProductBFloat16 = 1 << 20, kProductInt8 = 1 << 17;
constexpr int64_t kProductRows = 16;
// Constants of at least this number of bytes are ordered for the library once, for products on AMX.
constexpr int64_t kMinPackedBytes = int64_t{64} << 10;

// False, without any effect, if our kernels should be used. A: rows with unit column stride. `ours_is_faster`: than
// all library products except those on AMX.
bool matrix_product(const MatrixProduct& product, bool ours_is_faster = false);
// c[m, n] of int32 from a[m, k] of int8 or uint8 and b[k, n] of int8. Exact.
bool int8_matrix_product(bool a_is_signed, const MatrixProduct& product);

// c[m, n] = activation((a[m, k] W + bias) COMBINATION other), everything contiguous unless said otherwise.
struct LinearLayer {
  DType dtype;
  int64_t m, n, k;
  const void* input;
  Storage* constant;   // of the weight
  const void* weight;  // [n, k], strides in elements
  int64_t weight_out, weight_in;
  const BlockedWeight* blocked;  // if it is opaque
  const Tensor* bias;            // [n], or null
  Fusion fusion;
  const void* other;                // of the same dtype
  int64_t other_row, other_column;  // strides, 0 if broadcast
  void* output;
};
bool linear_layer(const LinearLayer& layer);

}  // namespace sconce::onednn
