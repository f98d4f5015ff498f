// Kernels in addition to cuBLASLt, mostly for products of low-bit types, for host code. dtype: c10::ScalarType.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

// One value per row or column, or with stride 0 a single one. Null counts as 1 (a bias: none).
struct PerLine {
  const void* data = nullptr;
  int64_t stride = 0;
  int dtype = 6;
};

// out[r][c] = (in[r][c] * rows[r] * columns[c] + bias[c]) * factor[0]. `in` is packed row-major float32; strides of out
// in elements.
struct ScaledSums {
  const float* in;
  int64_t rows, columns;
  PerLine by_row, by_column, bias, factor;
  void* out;
  int out_dtype;
  int64_t out_row_stride, out_column_stride;
};
void launch_scaled_sums(const ScaledSums& sums, cudaStream_t stream);

// in[r][c] *= scales[r / rows_each][c / columns_each]
void launch_scale_blocks(float* in, int64_t rows, int64_t columns, const float* scales, int64_t row_stride,
                         int64_t column_stride, int64_t rows_each, int64_t columns_each, cudaStream_t stream);

// Unpacks 4-bit weights from the layout of aten::_convert_weight_to_int4pack on CUDA, [n / 8, k / (16 inner), 32, inner
// / 2] words, into bfloat16 [n, k]: (q - 8) * scale + zero, from scales_and_zeros [k / group, n, 2].
void launch_unpack_int4(const int32_t* packed, int64_t n, int64_t k, int inner, const void* scales_and_zeros,
                        int64_t group, void* out, cudaStream_t stream);

// Converts packed int8 to float16, bfloat16 or float32, exactly. Both addresses are multiples of 16, and so is `count`.
cudaError_t launch_widen_int8(const int8_t* in, int64_t count, int dtype, void* out, cudaStream_t stream);

// max(x, 0), or gelu by tanh, in place; floating dtypes, cudaErrorNotSupported for others.
cudaError_t launch_activation(void* x, int64_t count, bool gelu, int dtype, cudaStream_t stream);

}  // namespace sconce::cuda
