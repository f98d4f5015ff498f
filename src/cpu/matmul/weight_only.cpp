#include "src/cpu/matmul/weight_only.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "sconce/check.h"
#include "src/cpu/matmul/gemm/gemm.h"
#include "src/cpu/vector/post_ops.h"
#include "src/device/cpu_isa.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/inspection.h"

namespace sconce {
namespace {

constexpr int64_t kProductsPerThread = 500'000, kInt4ProductsPerThread = 200'000;

thread_local int8_t packing_of_this_thread = -1;

bool is_small_float(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

int64_t grain(int64_t products) { return std::max<int64_t>(1, kProductsPerThread / std::max<int64_t>(1, products)); }
int64_t int4_grain(int64_t products) {
  return std::max<int64_t>(1, kInt4ProductsPerThread / std::max<int64_t>(1, products));
}

// The sum of a[i] * b[i].
float dot(const float* a, const int8_t* b, int64_t k) noexcept {
  __m256 sums[4] = {};
  int64_t i = 0;
  const auto step = [&](int64_t at, __m256& sum) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(b + at));
    sum = _mm256_fmadd_ps(_mm256_loadu_ps(a + at), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)), sum);
  };
  for (; i + 32 <= k; i += 32)
    for (int64_t j = 0; j < 4; ++j) step(i + 8 * j, sums[j]);
  for (; i + 8 <= k; i += 8) step(i, sums[0]);
  const __m256 all = _mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3]));
  const __m128 half = _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
  const __m128 pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
  float sum = _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
  for (; i < k; ++i) sum += a[i] * static_cast<float>(b[i]);
  return sum;
}

// One block of columns, rows [m0, m1) of a.
struct Int4Block {
  const float* a;
  int64_t k, group;
  const uint8_t* bytes;  // [k][columns / 2]
  int64_t columns;
  Int4Packing packing;     // of this block: kPairs where it is not a whole one
  const std::byte* table;  // of the first column: [k / group], `table_pitch` bytes apart, of pairs of scale and zero
  DType table_dtype;
  int64_t table_pitch;
};

// Scales and zeros of a group, side by side.
template <int64_t Columns>
[[gnu::always_inline]] inline void split_pairs(const Int4Block& b, int64_t g, float* scale, float* zero) {
  const std::byte* const from = b.table + g * b.table_pitch;
  if (b.table_dtype == DType::kBFloat16) {
    uint32_t pairs[Columns];
    std::memcpy(pairs, from, sizeof pairs);
    for (int64_t j = 0; j < Columns; ++j) scale[j] = std::bit_cast<float>(pairs[j] << 16);
    for (int64_t j = 0; j < Columns; ++j) zero[j] = std::bit_cast<float>(pairs[j] & 0xFFFF0000u);
  } else {
    gather_floats(b.table_dtype, from, 2, scale, Columns);
    gather_floats(b.table_dtype, from + dtype_bytes(b.table_dtype), 2, zero, Columns);
  }
}

constexpr int64_t kRows = 4, kMaxColumns = 64;

// Nibbles less 8, column by column.
template <Int4Packing Packing, int64_t Columns>
[[gnu::always_inline]] inline void decode(const uint8_t* bytes, float* to) {
  constexpr int64_t kHalf = Columns / 2;
  // First bytes are unpacked, then floats are made, so that each loop uses the widest vectors for its type.
  int8_t low[kHalf], high[kHalf];
  for (int64_t i = 0; i < kHalf; ++i) low[i] = static_cast<int8_t>((bytes[i] & 15) - 8);
  for (int64_t i = 0; i < kHalf; ++i) high[i] = static_cast<int8_t>((bytes[i] >> 4) - 8);
  if constexpr (Packing == Int4Packing::kPairs) {
    for (int64_t i = 0; i < kHalf; ++i) {
      to[2 * i] = static_cast<float>(low[i]);
      to[2 * i + 1] = static_cast<float>(high[i]);
    }
  } else {
    for (int64_t i = 0; i < kHalf; ++i) to[i] = static_cast<float>(low[i]);
    for (int64_t i = 0; i < kHalf; ++i) to[i + kHalf] = static_cast<float>(high[i]);
  }
}

template <Int4Packing Packing, int64_t Columns, int64_t rows>
[[gnu::always_inline]] inline void int4_exactly(const Int4Block& b, const float* a, float* out) {
  float total[rows][Columns] = {};
  for (int64_t g = 0; g < b.k / b.group; ++g) {
    float sums[rows][Columns] = {}, row_sums[rows] = {};
    for (int64_t p = g * b.group; p < (g + 1) * b.group; ++p) {
      float w[Columns];
      decode<Packing, Columns>(b.bytes + p * Columns / 2, w);
      for (int64_t r = 0; r < rows; ++r) {
        const float factor = a[r * b.k + p];
        row_sums[r] += factor;
        for (int64_t j = 0; j < Columns; ++j) sums[r][j] = std::fma(factor, w[j], sums[r][j]);
      }
    }
    float scale[Columns], zero[Columns];
    split_pairs<Columns>(b, g, scale, zero);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < Columns; ++j) total[r][j] += std::fma(sums[r][j], scale[j], row_sums[r] * zero[j]);
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < Columns; ++j) out[r * kMaxColumns + j] = total[r][j];
}

// With the number of rows known, sums stay in registers.
template <Int4Packing Packing, int64_t Columns>
[[gnu::always_inline]] inline void int4_rows(const Int4Block& b, int64_t rows, const float* a, float* out) {
  switch (rows) {
    case 1:
      return int4_exactly<Packing, Columns, 1>(b, a, out);
    case 2:
      return int4_exactly<Packing, Columns, 2>(b, a, out);
    case 3:
      return int4_exactly<Packing, Columns, 3>(b, a, out);
    default:
      return int4_exactly<Packing, Columns, 4>(b, a, out);
  }
}

[[gnu::always_inline]] inline void int4_any(const Int4Block& b, int64_t rows, const float* a, float* out) {
  switch (b.packing) {
    case Int4Packing::kColumns64:
      return int4_rows<Int4Packing::kColumns64, 64>(b, rows, a, out);
    case Int4Packing::kColumns32:
      return int4_rows<Int4Packing::kColumns32, 32>(b, rows, a, out);
    default:
      switch (b.columns) {
        case 16:
          return int4_rows<Int4Packing::kPairs, 16>(b, rows, a, out);
        case 32:
          return int4_rows<Int4Packing::kPairs, 32>(b, rows, a, out);
        default:
          return int4_rows<Int4Packing::kPairs, 48>(b, rows, a, out);
      }
  }
}

// The same for whole blocks of 64 columns, a table's entry for each nibble.
template <int Rows>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) void int4_by_table(const Int4Block& b, const float* a,
                                                                                 float* out) {
  constexpr __mmask16 kAll = 0xFFFF;  // without a mask, GCC 12 warns of values that are not set
  const __m512 table = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
  __m512 total[Rows][4];
  for (auto& row : total)
    for (__m512& part : row) part = _mm512_setzero_ps();
  for (int64_t g = 0; g < b.k / b.group; ++g) {
    __m512 sums[Rows][4];
    float row_sums[Rows] = {};
    for (auto& row : sums)
      for (__m512& part : row) part = _mm512_setzero_ps();
    for (int64_t p = g * b.group; p < (g + 1) * b.group; ++p) {
      __m512 w[4];
      for (int half = 0; half < 2; ++half) {
        const auto* const bytes = reinterpret_cast<const __m128i*>(b.bytes + p * 32 + half * 16);
        const __m512i both = _mm512_maskz_cvtepu8_epi32(kAll, _mm_loadu_si128(bytes));
        w[half] = _mm512_maskz_permutexvar_ps(kAll, both, table);  // an index counts with its lowest four bits
        w[2 + half] = _mm512_maskz_permutexvar_ps(kAll, _mm512_maskz_srli_epi32(kAll, both, 4), table);
      }
      for (int r = 0; r < Rows; ++r) {
        const float factor = a[r * b.k + p];
        row_sums[r] += factor;
        for (int j = 0; j < 4; ++j) sums[r][j] = _mm512_fmadd_ps(_mm512_set1_ps(factor), w[j], sums[r][j]);
      }
    }
    float scale[64], zero[64];
    split_pairs<64>(b, g, scale, zero);
    for (int r = 0; r < Rows; ++r)
      for (int j = 0; j < 4; ++j) {
        const __m512 shift = _mm512_mul_ps(_mm512_set1_ps(row_sums[r]), _mm512_loadu_ps(zero + 16 * j));
        total[r][j] = _mm512_add_ps(total[r][j], _mm512_fmadd_ps(sums[r][j], _mm512_loadu_ps(scale + 16 * j), shift));
      }
  }
  for (int r = 0; r < Rows; ++r)
    for (int j = 0; j < 4; ++j) _mm512_storeu_ps(out + r * kMaxColumns + 16 * j, total[r][j]);
}

void int4_avx2(const Int4Block& b, int64_t rows, const float* a, float* out) { int4_any(b, rows, a, out); }
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))) void int4_avx512(
    const Int4Block& b, int64_t rows, const float* a, float* out) {
  if (b.packing != Int4Packing::kColumns64) return int4_any(b, rows, a, out);
  switch (rows) {
    case 1:
      return int4_by_table<1>(b, a, out);
    case 2:
      return int4_by_table<2>(b, a, out);
    case 3:
      return int4_by_table<3>(b, a, out);
    default:
      return int4_by_table<4>(b, a, out);
  }
}

int64_t width(Int4Packing packing) { return packing == Int4Packing::kColumns64 ? 64 : 32; }

}  // namespace

Int4PackingScope::Int4PackingScope(Int4Packing packing) noexcept : previous_(packing_of_this_thread) {
  packing_of_this_thread = static_cast<int8_t>(packing);
}
Int4PackingScope::~Int4PackingScope() { packing_of_this_thread = previous_; }
Int4Packing Int4PackingScope::current() noexcept {
  if (packing_of_this_thread >= 0) return static_cast<Int4Packing>(packing_of_this_thread);
  return has_avx512() ? Int4Packing::kColumns64 : Int4Packing::kColumns32;
}

namespace cpu {

// self [M, K] float32, float16 or bfloat16, unit column stride; mat2 int8 [N, K], contiguous; scales [N] of self's
// dtype: (self @ mat2^T) * scales. kInvalidArgument as ATen refuses.
Tensor _weight_int8pack_mm(const Tensor& self, const Tensor& mat2, const Tensor& scales) {
  constexpr const char* kName = "_weight_int8pack_mm_cpu";
  SCONCE_CHECK(is_small_float(self.dtype()), kInvalidArgument, kName,
               " : expect A to be either 32-bit or 16-bit float tensor, got ", dtype_name(self.dtype()));
  SCONCE_CHECK(self.dim() == 2 && (self.stride(1) == 1 || self.size(1) <= 1), kInvalidArgument, kName,
               " : A must be contiguous on the last dimension, got ", describe(self));
  const int64_t m = self.size(0), k = self.size(1);
  SCONCE_CHECK(mat2.dtype() == DType::kInt8 && mat2.dim() == 2 && mat2.is_contiguous(), kInvalidArgument, kName,
               " : expect B to be contiguous int8 matrix, got ", describe(mat2));
  SCONCE_CHECK(mat2.size(1) == k, kInvalidArgument, kName, " : expect B.size(1) == ", k, ", got ", mat2.size(1));
  const int64_t n = mat2.size(0);
  SCONCE_CHECK(scales.dim() == 1 && scales.size(0) == n, kInvalidArgument, kName,
               " : expect scales to be 1d tensor with size ", n, ", got ", describe(scales));
  SCONCE_CHECK(scales.dtype() == self.dtype(), kInvalidArgument, kName, " : expected scalar type ",
               dtype_name(self.dtype()), " but found ", dtype_name(scales.dtype()));
  const int64_t sizes[2] = {m, n};
  Tensor out = Tensor::empty(sizes, self.dtype());
  if (out.numel() == 0) return out;
  const Tensor a = contiguous(to_dtype(self, DType::kFloat32)), scale = contiguous(to_dtype(scales, DType::kFloat32));
  const float* const s = scale.data_as<float>();
  Tensor sums = Tensor::empty(sizes, DType::kFloat32);
  auto* const to = sums.data_as<float>();
  if (m > 8) {
    const Tensor b = to_dtype(mat2, DType::kFloat32);
    MatrixProduct p{};
    p.dtype = DType::kFloat32;
    p.m = m;
    p.n = n;
    p.k = k;
    p.a = {a.data(), 0, k, 1};
    p.b = {b.data(), 0, 1, k};
    p.c = to;
    p.c_row_stride = n;
    p.c_column_stride = 1;
    matrix_product(kName, p);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) to[i * n + j] *= s[j];
  } else {
    parallel_for(0, n, grain(m * k), [&](int64_t begin, int64_t end) noexcept {
      for (int64_t j = begin; j < end; ++j)
        for (int64_t i = 0; i < m; ++i)
          to[i * n + j] = s[j] * dot(a.data_as<float>() + i * k, mat2.data_as<int8_t>() + j * k, k);
    });
  }
  scatter_floats(to, out.dtype(), out.data(), 1, m * n);
  return out;
}

// X [M, K] as above, contiguous; w uint8 [N, K / 2], packed, N a multiple of 16; qGroupSize one of 32, 64, 128, 256
// that divides K; qScaleAndZeros [K / qGroupSize, N, 2] of X's dtype. An element is (nibble - 8) * scale + zero.
Tensor _weight_int4pack_mm_cpu_tensor(const Tensor& X, const Tensor& w, const Tensor& qGroupSize,
                                      const Tensor& qScaleAndZeros) {
  constexpr const char* kName = "_weight_int4pack_mm_cpu";
  SCONCE_CHECK(is_small_float(X.dtype()), kInvalidArgument, kName,
               " : expect A to be either 32-bit or 16-bit float tensor, got ", dtype_name(X.dtype()));
  SCONCE_CHECK(X.dim() == 2 && X.is_contiguous(), kInvalidArgument, kName, " : expect A to be contiguous matrix, got ",
               describe(X));
  SCONCE_CHECK(w.dtype() == DType::kUInt8 && w.dim() == 2 && w.is_contiguous(), kInvalidArgument, kName,
               " : expect B to be contiguous uint8 matrix, got ", describe(w));
  const int64_t group = item(qGroupSize).i, m = X.size(0), k = X.size(1), n = w.size(0);
  SCONCE_CHECK(group == 32 || group == 64 || group == 128 || group == 256, kInvalidArgument, kName,
               ": expect qGroupSize to be 32, 64, 128 or 256, got ", group);
  SCONCE_CHECK(k % group == 0, kInvalidArgument, kName, ": expect K to be divisible by qGroupSize, got K:", k,
               ", qGroupSize:", group);
  SCONCE_CHECK(w.size(1) == k / 2 && n % 16 == 0, kInvalidArgument, kName, " : expect B.size(1) == ", k / 2,
               " and B.size(0) to be a multiple of 16, got ", describe(w));
  const Tensor& q = qScaleAndZeros;
  SCONCE_CHECK(q.dim() == 3 && q.size(0) == k / group && q.size(1) == n && q.size(2) == 2, kInvalidArgument, kName,
               ": expect qScaleAndZeros to be 3d tensor with sizes [", k / group, ", ", n, ", 2], got ", describe(q));
  SCONCE_CHECK(q.dtype() == X.dtype(), kInvalidArgument, kName, ": expected scalar type ", dtype_name(X.dtype()),
               " but found ", dtype_name(q.dtype()));
  const int64_t sizes[2] = {m, n};
  Tensor out = Tensor::empty(sizes, X.dtype());
  if (out.numel() == 0) return out;
  const Tensor a = to_dtype(X, DType::kFloat32), table = contiguous(q);
  const Int4Packing packing = Int4PackingScope::current();
  const int64_t columns = width(packing), blocks = (n + columns - 1) / columns;
  const auto pair = static_cast<int64_t>(2 * table.itemsize());
  const auto run = has_avx512() ? &int4_avx512 : &int4_avx2;
  parallel_for(0, blocks, int4_grain(m * k * columns), [&](int64_t begin, int64_t end) noexcept {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * columns, count = std::min(columns, n - first);
      const Int4Block b{a.data_as<float>(),
                        k,
                        group,
                        w.data_as<uint8_t>() + first * k / 2,
                        count,
                        count == columns ? packing : Int4Packing::kPairs,
                        static_cast<const std::byte*>(table.data()) + first * pair,
                        table.dtype(),
                        n * pair};
      float sums[kRows * kMaxColumns];
      for (int64_t i = 0; i < m; i += kRows) {
        const int64_t rows = std::min(kRows, m - i);
        run(b, rows, b.a + i * k, sums);
        for (int64_t r = 0; r < rows; ++r) {
          auto* to = static_cast<std::byte*>(out.data()) + ((i + r) * n + first) * static_cast<int64_t>(out.itemsize());
          scatter_floats(sums + r * kMaxColumns, out.dtype(), to, 1, count);
        }
      }
    }
  });
  return out;
}

Tensor _convert_weight_to_int4pack_for_cpu(const Tensor& self, int64_t) {
  constexpr const char* kName = "_convert_weight_to_int4pack_for_cpu";
  SCONCE_CHECK(self.dim() == 2 && self.dtype() == DType::kInt32, kInvalidArgument, kName,
               " : expect weight to be a matrix of int32, got ", describe(self));
  const int64_t n = self.size(0), k = self.size(1);
  SCONCE_CHECK(n % 16 == 0 && k % 2 == 0, kInvalidArgument, kName, " : N must be a multiple of 16 and K even, got ",
               describe(self));
  const Tensor weight = contiguous(self);
  const auto* const from = weight.data_as<int32_t>();
  const int64_t sizes[2] = {n, k / 2};
  Tensor out = Tensor::empty(sizes, DType::kUInt8);
  const Int4Packing packing = Int4PackingScope::current();
  const int64_t columns = width(packing);
  for (int64_t first = 0; first < n; first += columns) {
    const int64_t count = std::min(columns, n - first), half = count / 2;
    const bool pairs = packing == Int4Packing::kPairs || count != columns;
    uint8_t* const to = out.data_as<uint8_t>() + first * k / 2;
    const auto nibble = [&](int64_t column, int64_t p) { return from[(first + column) * k + p] & 15; };
    for (int64_t p = 0; p < k; ++p)
      for (int64_t i = 0; i < half; ++i)
        to[p * half + i] = static_cast<uint8_t>(pairs ? nibble(2 * i, p) | nibble(2 * i + 1, p) << 4
                                                      : nibble(i, p) | nibble(i + half, p) << 4);
  }
  return out;
}

}  // namespace cpu
}  // namespace sconce
