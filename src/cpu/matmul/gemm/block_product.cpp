#include "src/cpu/matmul/gemm/block_product.h"

#include <immintrin.h>

#include <algorithm>
#include <cstdlib>
#include <type_traits>

#include "sconce/check.h"
#include "src/cpu/matmul/gemm/gemm_kernels.h"
#include "src/tensor/elements/convert.h"

namespace sconce {
namespace {

class Scratch {
 public:
  ~Scratch() { std::free(memory_); }

  std::byte* of(int64_t bytes) {
    if (bytes > bytes_) {
      std::free(memory_);
      bytes_ = (bytes + 4095) / 4096 * 4096;
      memory_ = static_cast<std::byte*>(std::aligned_alloc(64, static_cast<size_t>(bytes_)));
      if (!memory_) bytes_ = 0;
      SCONCE_CHECK(memory_, kOutOfMemory, "matrix product: cannot allocate ", bytes, " bytes of scratch");
    }
    return memory_;
  }

 private:
  std::byte* memory_ = nullptr;
  int64_t bytes_ = 0;
};

thread_local Scratch scratch;

template <class S>
void to_floats(const S* from, float* to, int64_t n) noexcept {
  if constexpr (std::is_same_v<S, Half>)
    half_to_float(from, to, n);
  else if constexpr (std::is_same_v<S, BFloat16>)
    bfloat16_to_float(from, to, n);
  else
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]);
}

// Columns [j, j + columns) of b as a panel of floats, zeros beyond.
template <class S>
void fill_panel(const BlockProduct& p, const S* b, int64_t j, int64_t columns, int64_t width, float* panel) noexcept {
  constexpr int64_t kTogether = 4 / sizeof(S);
  for (int64_t i = 0; i < p.k; ++i, panel += width) {
    if (!p.interleaved || kTogether == 1) {
      to_floats(b + i * p.b_rs + j, panel, columns);
    } else {
      const S* from = b + (i / kTogether * p.b_rs + j) * kTogether + i % kTogether;
      for (int64_t c = 0; c < columns; ++c) panel[c] = static_cast<float>(from[c * kTogether]);
    }
    std::fill(panel + columns, panel + width, 0.f);
  }
}

int64_t rounded(int64_t floats) { return (floats + 15) / 16 * 16; }

// Pairs of 16-bit numbers of a row, as pmaddwd takes them: exact for any bytes.
template <class T>
int32_t pair(const T* row, int64_t i, int64_t k) noexcept {
  const auto low = static_cast<uint16_t>(static_cast<int16_t>(row[i]));
  const auto high = i + 1 < k ? static_cast<uint16_t>(static_cast<int16_t>(row[i + 1])) : uint16_t{0};
  return static_cast<int32_t>(static_cast<uint32_t>(high) << 16 | low);
}

constexpr int64_t kColumns = 16, kRows = 4;

// c[rows, columns] from a[rows, k] and a panel of 16 columns of pairs.
template <class A, int64_t Rows>
void byte_tile(const BlockProduct& p, const A* a, const int32_t* panel, int64_t columns, int32_t* c) noexcept {
  __m256i sums[Rows][2] = {};
  for (int64_t i = 0; i < p.k; i += 2, panel += kColumns) {
    const __m256i low = _mm256_load_si256(reinterpret_cast<const __m256i*>(panel));
    const __m256i high = _mm256_load_si256(reinterpret_cast<const __m256i*>(panel + 8));
    for (int64_t r = 0; r < Rows; ++r) {
      const __m256i x = _mm256_set1_epi32(pair(a + r * p.a_rs, i, p.k));
      sums[r][0] = _mm256_add_epi32(sums[r][0], _mm256_madd_epi16(x, low));
      sums[r][1] = _mm256_add_epi32(sums[r][1], _mm256_madd_epi16(x, high));
    }
  }
  for (int64_t r = 0; r < Rows; ++r) {
    alignas(32) int32_t sum[kColumns];
    _mm256_store_si256(reinterpret_cast<__m256i*>(sum), sums[r][0]);
    _mm256_store_si256(reinterpret_cast<__m256i*>(sum + 8), sums[r][1]);
    for (int64_t j = 0; j < columns; ++j) {
      const uint32_t before = p.add ? static_cast<uint32_t>(c[r * p.c_rs + j]) : 0;
      c[r * p.c_rs + j] = static_cast<int32_t>(before + static_cast<uint32_t>(sum[j]));
    }
  }
}

}  // namespace

template <class S>
void block_product(const BlockProduct& p, const S* a, const S* b, float* c) {
  if (p.m <= 0 || p.n <= 0) return;
  constexpr bool kFloat = std::is_same_v<S, float>;
  const GemmKernels<float>& kernels = gemm_kernels<float>();
  const int64_t a_floats = kFloat ? 0 : rounded(p.m * p.k);
  auto* const converted =
      reinterpret_cast<float*>(scratch.of((a_floats + p.k * kernels.wide) * static_cast<int64_t>(sizeof(float))));
  float* const panel = converted + a_floats;
  if constexpr (!kFloat)
    for (int64_t i = 0; i < p.m; ++i) to_floats(a + i * p.a_rs, converted + i * p.k, p.k);

  for (int64_t j = 0; j < p.n; j += kernels.wide) {
    const int64_t columns = std::min<int64_t>(p.n - j, kernels.wide), width = kernels.panel_width(columns);
    const GemmEpilogue<float> epilogue{1, 1, p.add ? c + j : nullptr, p.c_rs, 1};
    if constexpr (kFloat) {
      if (columns == width) {
        kernels.panel(p.m, p.k, a, p.a_rs, 1, b + j, p.b_rs, columns, epilogue, c + j, p.c_rs);
      } else {
        kernels.pack(p.k, columns, b + j, p.b_rs, 1, panel);
        kernels.panel(p.m, p.k, a, p.a_rs, 1, panel, width, columns, epilogue, c + j, p.c_rs);
      }
    } else {
      fill_panel(p, b, j, columns, width, panel);
      kernels.panel(p.m, p.k, converted, p.k, 1, panel, width, columns, epilogue, c + j, p.c_rs);
    }
  }
}

template <class A, class B>
void block_product(const BlockProduct& p, const A* a, const B* b, int32_t* c) {
  const int64_t pairs = (p.k + 1) / 2;
  auto* const panel = reinterpret_cast<int32_t*>(scratch.of(pairs * kColumns * static_cast<int64_t>(sizeof(int32_t))));
  for (int64_t j = 0; j < p.n; j += kColumns) {
    const int64_t columns = std::min(p.n - j, kColumns);
    std::fill(panel, panel + pairs * kColumns, 0);
    auto* const halves = reinterpret_cast<int16_t*>(panel);
    for (int64_t i = 0; i < p.k; ++i)
      for (int64_t col = 0; col < columns; ++col)
        halves[(i / 2 * kColumns + col) * 2 + i % 2] =
            p.interleaved ? b[(i / 4 * p.b_rs + j + col) * 4 + i % 4] : b[i * p.b_rs + j + col];
    int64_t i = 0;
    for (; i + kRows <= p.m; i += kRows) byte_tile<A, kRows>(p, a + i * p.a_rs, panel, columns, c + i * p.c_rs + j);
    for (; i < p.m; ++i) byte_tile<A, 1>(p, a + i * p.a_rs, panel, columns, c + i * p.c_rs + j);
  }
}

void interleave_pairs(int64_t k, int64_t columns, const uint16_t* b, int64_t b_rs, uint16_t* to,
                      int64_t to_rs) noexcept {
  for (int64_t i = 0; i < k; i += 2)
    for (int64_t j = 0; j < columns; ++j) {
      uint16_t* const at = to + (i / 2 * to_rs + j) * 2;
      at[0] = b[i * b_rs + j];
      at[1] = i + 1 < k ? b[(i + 1) * b_rs + j] : uint16_t{0};
    }
}

template void block_product(const BlockProduct&, const float*, const float*, float*);
template void block_product(const BlockProduct&, const Half*, const Half*, float*);
template void block_product(const BlockProduct&, const BFloat16*, const BFloat16*, float*);
template void block_product(const BlockProduct&, const Float8E4M3FN*, const Float8E4M3FN*, float*);
template void block_product(const BlockProduct&, const Float8E5M2*, const Float8E5M2*, float*);
template void block_product(const BlockProduct&, const uint8_t*, const uint8_t*, int32_t*);
template void block_product(const BlockProduct&, const uint8_t*, const int8_t*, int32_t*);
template void block_product(const BlockProduct&, const int8_t*, const int8_t*, int32_t*);

}  // namespace sconce
