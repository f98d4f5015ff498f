// Products of few rows, which take the time of reading the weights once. Weights of few bits are read in their stored
// form. For host code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "src/cuda/matmul/matmul_kernels.h"

namespace sconce::cuda {

inline constexpr int64_t kMostFewRowsInt4 = 16, kMostFewRowsInt8 = 8;

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

inline constexpr int64_t kMostFewRows = 8;

// out [rows, n] = alpha x [rows, k] @ weight [k, n] + bias [n] (null: none), all of one dtype: float16, bfloat16 or
// float32, with sums in float32. Strides count elements. Rows of x and out are contiguous, and so are columns of
// weight, which is (1, weight_stride) strided. k fills whole 16 bytes; x, weight, their rows and columns are aligned to
// 16 bytes.
struct FewRows {
  const void *x, *weight;
  bool constant_weight;  // no kernel before this one writes it, so it may be read before they end
  int64_t rows, n, k, x_stride, weight_stride;
  float alpha;
  const void* bias;
  void* out;
  int64_t out_stride;
  int dtype;
};
cudaError_t launch_few_rows(const FewRows& call, int multiprocessors, cudaStream_t stream);

}  // namespace sconce::cuda
