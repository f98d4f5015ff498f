// Products of few rows with weights of few bits, read as they lie: for host code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "src/cuda/matmul/matmul_kernels.h"

namespace sconce::cuda {

inline constexpr int64_t kMostFewRowsInt4 = 16, kMostFewRowsInt8 = 8;

// x bfloat16 [rows, k], columns side by side and rows aligned to 4 bytes, with weights as launch_unpack_int4() has
// them, aligned to 16 bytes: out bfloat16 [rows, n], packed.
struct FewRowsInt4 {
  const void* x;
  int64_t rows, x_stride, n, k;
  const int32_t* packed;
  int inner;  // 2, 4 or 8
  const void* scales_and_zeros;
  int64_t group;
  void* out;
};
void launch_few_rows_int4(const FewRowsInt4& call, cudaStream_t stream);

// x [rows, k], packed and aligned to 16 bytes as the weights int8 [n, k] are; k a multiple of 16. out [rows, n],
// packed, of the dtype of x: float16, bfloat16 or float32. Sums are float32, times the scale of their column.
struct FewRowsInt8 {
  const void* x;
  int64_t rows, n, k;
  const int8_t* weight;
  PerLine scales;
  void* out;
  int dtype;
};
cudaError_t launch_few_rows_int8(const FewRowsInt8& call, cudaStream_t stream);

}  // namespace sconce::cuda
