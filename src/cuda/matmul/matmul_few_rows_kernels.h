// Products of few rows, which take the time of reading the weights once. For host code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

inline constexpr int64_t kMaxFewRows = 8;

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
