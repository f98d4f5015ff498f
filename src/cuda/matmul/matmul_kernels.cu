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

template <class T>
cudaError_t widen_int8_as(const int8_t* in, int64_t count, void* out, cudaStream_t stream) {
  constexpr int kAtOnce = 16 / static_cast<int>(sizeof(T));
  const auto* from = reinterpret_cast<const Pack<int8_t, kAtOnce>*>(in);
  auto* to = static_cast<Pack<T, kAtOnce>*>(out);
  grid_loop(count / kAtOnce, stream, [=] __device__(int64_t i) {
    const Pack<int8_t, kAtOnce> given = from[i];
    Pack<T, kAtOnce> made;
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) made.at[k] = narrowed<T>(static_cast<float>(given.at[k]));
    to[i] = made;
  });
  return cudaGetLastError();
}

// Scaled sums in packs, without a bias or a factor: rows of `out` and its addresses are multiples of four elements.
constexpr int kSumsAtOnce = 4;
bool packed_sums(const ScaledSums& s, int itemsize) {
  return !s.bias.data && !s.factor.data && s.out_column_stride == 1 && s.columns % kSumsAtOnce == 0 &&
         s.out_row_stride % kSumsAtOnce == 0 &&
         reinterpret_cast<uintptr_t>(s.in) % (kSumsAtOnce * sizeof(float)) == 0 &&
         reinterpret_cast<uintptr_t>(s.out) % static_cast<uintptr_t>(kSumsAtOnce * itemsize) == 0;
}
template <class T>
bool scaled_sums_as(const ScaledSums& sums, cudaStream_t stream) {
  if (!packed_sums(sums, sizeof(T))) return false;
  const ScaledSums s = sums;
  const Divider by_columns(s.columns / kSumsAtOnce);
  grid_loop(s.rows * s.columns / kSumsAtOnce, stream, [=] __device__(int64_t i) {
    int64_t r = i;
    const int64_t c = by_columns.take(r) * kSumsAtOnce;
    const auto given = *reinterpret_cast<const Pack<float, kSumsAtOnce>*>(s.in + i * kSumsAtOnce);
    const float row = value_of(s.by_row, r, 1);
    Pack<T, kSumsAtOnce> made;
#pragma unroll
    for (int k = 0; k < kSumsAtOnce; ++k)
      made.at[k] = narrowed<T>(given.at[k] * (row * value_of(s.by_column, c + k, 1)));
    *reinterpret_cast<Pack<T, kSumsAtOnce>*>(static_cast<T*>(s.out) + r * s.out_row_stride + c) = made;
  });
  return true;
}
bool launch_packed_sums(const ScaledSums& sums, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE_OR(false, sums.out_dtype, SCONCE_FLOAT_CASES(scaled_sums_as, sums, stream));
}

}  // namespace

cudaError_t launch_widen_int8(const int8_t* in, int64_t count, int dtype, void* out, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_FLOAT_CASES(widen_int8_as, in, count, out, stream));
}

void launch_scaled_sums(const ScaledSums& sums, cudaStream_t stream) {
  if (launch_packed_sums(sums, stream)) return;
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
