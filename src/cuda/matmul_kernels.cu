#include "src/cuda/matmul_kernels.h"

#include "src/cuda/grid_loop.cuh"
#include "src/cuda/per_line.cuh"

namespace sconce::cuda {
void launch_scaled_sums(const ScaledSums& sums, cudaStream_t stream) {
  const ScaledSums s = sums;
  grid_loop(s.rows * s.columns, stream, [=] __device__(int64_t i) {
    const int64_t r = i / s.columns, c = i % s.columns;
    float v = s.in[i] * (value_of(s.by_row, r, 1) * value_of(s.by_column, c, 1));
    if (s.bias.data) v += value_of(s.bias, c, 0);
    if (s.factor.data) v *= value_of(s.factor, 0, 1);
    store(static_cast<char*>(s.out) + (r * s.out_row_stride + c * s.out_column_stride) * bytes_of(s.out_dtype),
          s.out_dtype, real(v));
  });
}

void launch_scale_blocks(float* in, int64_t rows, int64_t columns, const float* scales, int64_t row_stride,
                         int64_t column_stride, int64_t rows_each, int64_t columns_each, cudaStream_t stream) {
  grid_loop(rows * columns, stream, [=] __device__(int64_t i) {
    in[i] *= scales[i / columns / rows_each * row_stride + i % columns / columns_each * column_stride];
  });
}

void launch_unpack_int4(const int32_t* packed, int64_t n, int64_t k, int inner, const void* scales_and_zeros,
                        int64_t group, void* out, cudaStream_t stream) {
  const auto* scales = static_cast<const __nv_bfloat16*>(scales_and_zeros);
  auto* to = static_cast<__nv_bfloat16*>(out);
  const int64_t k_tiles = k / (16 * inner), words = inner / 2;
  grid_loop(n / 8 * k_tiles * 32 * words, stream, [=] __device__(int64_t i) {
    const auto word = static_cast<uint32_t>(packed[i]);
    const int64_t pair = i % words, lane = i / words % 32, tile = i / words / 32 % k_tiles, rows = i / words / 32 / k_tiles;
    const int64_t row = rows * 8 + lane / 4;
    const int64_t first = (tile * inner + pair * 2) * 16 + lane % 4 * 2;
    for (int v = 0; v < 8; ++v) {
      // Nibbles lie as 0, 2, 4, 6, 1, 3, 5, 7, from the lowest.
      const uint32_t nibble = word >> 4 * (v % 2 * 4 + v / 2) & 15;
      const int64_t column = first + v / 4 * 16 + v / 2 % 2 * 8 + v % 2;
      const int64_t at = (column / group * n + row) * 2;
      const __nv_bfloat16 q = __float2bfloat16_rn(static_cast<float>(nibble) - 8);
      to[row * k + column] = __hfma(q, scales[at], scales[at + 1]);
    }
  });
}

}  // namespace sconce::cuda
