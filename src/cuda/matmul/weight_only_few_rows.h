// Products of few rows with weights of few bits, which are read in their stored form. For host code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "src/cuda/matmul/matmul_kernels.h"

namespace sconce::cuda {

inline constexpr int64_t kMaxFewRowsInt4 = 16, kMaxFewRowsInt8 = 8;

// out bfloat16 [rows, n] (packed) from x bfloat16 [rows, k] (columns contiguous, rows aligned to 4 bytes) and weights
// laid out as for launch_unpack_int4(), aligned to 16 bytes.
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

// out [rows, n] (packed) from x [rows, k] and int8 weights [n, k], both packed and aligned to 16 bytes; k a multiple of
// 16. x and out: float16, bfloat16 or float32. Sums are float32, times the scale of their column.
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
