// The inner loops for bfloat16 on CPUs with AVX512_BF16: an instruction multiplies two steps of k and adds both
// products to a float. It takes numbers below the smallest normal one for 0, as oneDNN's and thus PyTorch's loops do.
// GCC 12 takes its own intrinsics for uses of uninitialised variables (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <array>
#include <complex>
#include <cstdint>
#include <utility>

#include "src/cpu/matmul/gemm/gemm_isa.h"
#include "src/cpu/matmul/gemm/gemm_kernels.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,prefer-vector-width=512")
#define SCONCE_GEMM_AVX512
#include "src/cpu/vector/gemm_vectors.h"
// After gemm_vectors.h.
#include "src/cpu/matmul/gemm/gemm_finish.h"
#include "src/cpu/vector/transpose_blocks.h"

namespace sconce {
namespace {

using V = VectorF32;
constexpr int kRows = 14, kVectors = 2, kDotRows = 6;

__m512 multiply_add(__m512i a, __m512i b, __m512 sum) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}

// c[Rows, columns]; panel rows hold 16 * Vectors columns of pairs.
template <int Rows, int Vectors>
void tile(int64_t k, const BFloat16* a, int64_t a_rs, const BFloat16* b, int64_t columns,
          const GemmEpilogue<BFloat16>& e, int64_t row, BFloat16* c, int64_t c_rs) {
  constexpr int kAtOnce = Rows * Vectors >= 8 ? 1 : Rows * Vectors >= 4 ? 2 : 4;
  __m512 sum[kAtOnce][Rows][Vectors];
#pragma GCC unroll 4
  for (int s = 0; s < kAtOnce; ++s)
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) sum[s][i][j] = _mm512_setzero_ps();
  const auto step = [&](int s) {
    __m512i bs[Vectors];
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) bs[j] = _mm512_loadu_si512(b + j * 32);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      int pair;
      __builtin_memcpy(&pair, a + i * a_rs, sizeof(pair));
      const __m512i as = _mm512_set1_epi32(pair);
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) sum[s][i][j] = multiply_add(as, bs[j], sum[s][i][j]);
    }
    a += 2;
    b += Vectors * 32;
  };
  int64_t p = 0;
  for (; p + 2 * kAtOnce <= k; p += 2 * kAtOnce)
#pragma GCC unroll 4
    for (int s = 0; s < kAtOnce; ++s) step(s);
  if constexpr (kAtOnce > 1) {
    for (; p < k; p += 2) step(0);
#pragma GCC unroll 4
    for (int s = 1; s < kAtOnce; ++s)
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
        for (int j = 0; j < Vectors; ++j) sum[0][i][j] = _mm512_add_ps(sum[0][i][j], sum[s][i][j]);
  }
  if (columns == Vectors * V::W && e.alpha == 1 && (!e.self || (e.self_cs == 1 && e.beta == 1))) {
    if (const BFloat16* self = e.self) {
      self += row * e.self_rs;
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
        for (int j = 0; j < Vectors; ++j) sum[0][i][j] = V::add(sum[0][i][j], V::load(self + i * e.self_rs + j * V::W));
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) V::store(c + i * c_rs + j * V::W, sum[0][i][j]);
    return;
  }
  float sums[Rows][Vectors * V::W];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) V::store(&sums[i][j * V::W], sum[0][i][j]);
  finish_rows<V, BFloat16>(sums[0], Rows, Vectors * V::W, columns, e, row, c, c_rs);
}

template <int Vectors, size_t... I>
constexpr auto tiles(std::index_sequence<I...>) {
  return std::array{&tile<static_cast<int>(I) + 1, Vectors>...};
}

void panel(int64_t m, int64_t k, const BFloat16* a, int64_t a_rs, int64_t, const BFloat16* b, int64_t, int64_t columns,
           const GemmEpilogue<BFloat16>& e, BFloat16* c, int64_t c_rs) noexcept {
  static constexpr auto kNarrow = tiles<1>(std::make_index_sequence<kRows>());
  static constexpr auto kWide = tiles<kVectors>(std::make_index_sequence<kRows>());
  const auto& by_rows = columns > V::W ? kWide : kNarrow;
  int64_t left = (m + kRows - 1) / kRows;
  for (int64_t row = 0; row < m; --left) {
    const int64_t rows = (m - row + left - 1) / left;
    by_rows[static_cast<size_t>(rows - 1)](k, a + row * a_rs, a_rs, b, columns, e, row, c + row * c_rs, c_rs);
    row += rows;
  }
}

template <int Rows>
void dot_tile(int64_t k, const BFloat16* a, int64_t a_rs, const BFloat16* b, int64_t b_cs, float (*sums)[4]) {
  __m512 sum[Rows][4];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) sum[i][j] = _mm512_setzero_ps();
  for (int64_t p = 0; p < k; p += 32) {
    const __mmask32 mask = k - p >= 32 ? ~__mmask32{0} : (__mmask32{1} << (k - p)) - 1;
    __m512i as[Rows];
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) as[i] = _mm512_maskz_loadu_epi16(mask, a + i * a_rs + p);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const __m512i bs = _mm512_maskz_loadu_epi16(mask, b + j * b_cs + p);
      if constexpr (Rows == 1) __builtin_prefetch(b + j * b_cs + p + kDotAhead / sizeof(BFloat16), 0, 2);
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) sum[i][j] = multiply_add(as[i], bs, sum[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) V::sum4(sum[i][0], sum[i][1], sum[i][2], sum[i][3], sums[i]);
}

template <size_t... I>
constexpr auto dot_tiles(std::index_sequence<I...>) {
  return std::array{&dot_tile<static_cast<int>(I) + 1>...};
}

void dot(int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t a_rs, const BFloat16* b, int64_t b_cs,
         const GemmEpilogue<BFloat16>& e, BFloat16* c, int64_t c_rs) noexcept {
  static constexpr auto kByRows = dot_tiles(std::make_index_sequence<kDotRows>());
  dot_by_rows<BFloat16, BFloat16, kDotRows>(kByRows, m, n, k, a, a_rs, b, b_cs, e, c, c_rs);
}

void pack(int64_t k, int64_t columns, const BFloat16* b, int64_t b_rs, int64_t b_cs, BFloat16* to) noexcept {
  const int64_t width = columns > V::W ? kVectors * V::W : V::W, pairs = k / 2;
  int64_t done = 0;  // columns
  if (b_rs == 1) {
    for (; done + 8 <= columns; done += 8) {
      int64_t p = 0;
      for (; p + 8 <= pairs; p += 8)
        transpose8(reinterpret_cast<const float*>(b + done * b_cs + 2 * p), b_cs, 2,
                   reinterpret_cast<float*>(to + 2 * (p * width + done)), width);
      for (; p < pairs; ++p)
        for (int64_t j = done; j < done + 8; ++j)
          __builtin_memcpy(to + 2 * (p * width + j), b + 2 * p + j * b_cs, 2 * sizeof(BFloat16));
    }
  }
  for (int64_t p = 0; p < pairs; ++p) {
    BFloat16* const row = to + 2 * p * width;
    const BFloat16* const from = b + 2 * p * b_rs;
    if (b_cs == 1)
      for (int64_t j = done; j < columns; ++j) {
        row[2 * j] = from[j];
        row[2 * j + 1] = from[j + b_rs];
      }
    else
      for (int64_t j = done; j < columns; ++j) {
        row[2 * j] = from[j * b_cs];
        row[2 * j + 1] = from[j * b_cs + b_rs];
      }
    for (int64_t j = 2 * columns; j < 2 * width; ++j) row[j] = {};
  }
  if (k % 2 == 0) return;
  BFloat16* const row = to + 2 * pairs * width;
  for (int64_t j = 0; j < 2 * width; ++j) row[j] = {};
  for (int64_t j = 0; j < columns; ++j) row[2 * j] = b[(k - 1) * b_rs + j * b_cs];
}

}  // namespace

const GemmKernels<BFloat16, BFloat16> kGemmAvx512Bf16 = {
    .wide = kVectors * V::W,
    .narrow = V::W,
    .rows = kRows,
    .panel = &panel,
    .dot = &dot,
    .dot_rows = kDotRows,
    .stream = nullptr,
    .pack = &pack,
};

}  // namespace sconce
#pragma GCC pop_options
