#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/division.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/matmul/int4_weights.cuh"
#include "src/cuda/matmul/matmul_kernels.h"
#include "src/cuda/matmul/per_line.cuh"

namespace sconce::cuda {
namespace {

template <class T>
cudaError_t activation_as(void* x, int64_t count, bool gelu, cudaStream_t stream) {
  T* data = static_cast<T*>(x);
  grid_loop(count, stream, [=] __device__(int64_t i) {
    using C = Compute<T>;
    const C v = widened(data[i]);
    C result = v;
    if (gelu) {
      constexpr C kBeta = static_cast<C>(0.7978845608028654), kKappa = static_cast<C>(0.044715);
      result = C(0.5) * v * (C(1) + tanh(kBeta * (v + kKappa * v * v * v)));
    } else if (v < 0) {
      result = 0;
    }
    data[i] = narrowed<T>(result);
  });
  return cudaGetLastError();
}

}  // namespace

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

// A thread unpacks eight columns of a row: the pairs of four lanes of a matrix instruction.
void launch_unpack_int4(const int32_t* packed, int64_t n, int64_t k, int inner, const void* scales_and_zeros,
                        int64_t group, void* out, cudaStream_t stream) {
  const auto* scales = static_cast<const __nv_bfloat16*>(scales_and_zeros);
  auto* to = static_cast<Pack<__nv_bfloat162, 4>*>(out);
  const int words = inner / 2;
  const int64_t tiles = k / (16 * inner);
  const Divider chunks(k / 8), per_tile(4 * words), per_group(group / 8);
  grid_loop(n * (k / 8), stream, [=] __device__(int64_t i) {
    int64_t row = i;
    const int64_t chunk = chunks.take(row), at = (per_group.quotient(chunk) * n + row) * 2;
    int64_t tile = chunk;
    const int64_t part = per_tile.take(tile);
    const auto* first =
        reinterpret_cast<const uint32_t*>(packed) + ((row / 8 * tiles + tile) * 32 + row % 8 * 4) * words + part / 4;
    const Int4Scale by(__halves2bfloat162(scales[at], scales[at + 1]));
    Pack<__nv_bfloat162, 4> result;
#pragma unroll
    for (int t = 0; t < 4; ++t) result.at[t] = int4_pair(first[t * words], static_cast<int>(part % 4), by);
    to[i] = result;
  });
}

cudaError_t launch_activation(void* x, int64_t count, bool gelu, int dtype, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_FLOATING_CASES(activation_as, x, count, gelu, stream));
}

}  // namespace sconce::cuda
