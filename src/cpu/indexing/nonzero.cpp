#include "src/cpu/indexing/nonzero.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>

#include "sconce/check.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/strided_loop.h"

namespace sconce {
namespace {

__m256i load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

// Zero in a float has two forms, which differ in the first bit; shifting it out leaves one.
template <size_t Bytes, bool Float>
__m256i is_zero(const void* p) {
  __m256i x = load(p);
  if constexpr (Float) {
    if constexpr (Bytes == 1) x = _mm256_and_si256(x, _mm256_set1_epi8(0x7F));
    if constexpr (Bytes == 2) x = _mm256_slli_epi16(x, 1);
    if constexpr (Bytes == 4) x = _mm256_slli_epi32(x, 1);
    if constexpr (Bytes == 8) x = _mm256_slli_epi64(x, 1);
  }
  const __m256i zero = _mm256_setzero_si256();
  if constexpr (Bytes == 1) return _mm256_cmpeq_epi8(x, zero);
  if constexpr (Bytes == 2) return _mm256_cmpeq_epi16(x, zero);
  if constexpr (Bytes == 4) return _mm256_cmpeq_epi32(x, zero);
  if constexpr (Bytes == 8) return _mm256_cmpeq_epi64(x, zero);
}

// Bits of 64 packed elements.
template <size_t Bytes, bool Float>
uint64_t word_of(const char* p) {
  uint64_t zeros = 0;
  if constexpr (Bytes == 1) {
    for (int i = 0; i < 2; ++i)
      zeros |= uint64_t{static_cast<uint32_t>(_mm256_movemask_epi8(is_zero<1, Float>(p + 32 * i)))} << (32 * i);
  } else if constexpr (Bytes == 2) {
    for (int i = 0; i < 2; ++i) {
      const __m256i packed = _mm256_permute4x64_epi64(
          _mm256_packs_epi16(is_zero<2, Float>(p + 64 * i), is_zero<2, Float>(p + 64 * i + 32)), 0xD8);
      zeros |= uint64_t{static_cast<uint32_t>(_mm256_movemask_epi8(packed))} << (32 * i);
    }
  } else if constexpr (Bytes == 4) {
    for (int i = 0; i < 8; ++i)
      zeros |= uint64_t(_mm256_movemask_ps(_mm256_castsi256_ps(is_zero<4, Float>(p + 32 * i)))) << (8 * i);
  } else {
    for (int i = 0; i < 16; ++i)
      zeros |= uint64_t(_mm256_movemask_pd(_mm256_castsi256_pd(is_zero<8, Float>(p + 32 * i)))) << (4 * i);
  }
  return ~zeros;
}

template <class T>
uint64_t bits_of(const T* p, int64_t n) {
  uint64_t bits = 0;
  for (int64_t i = 0; i < n; ++i) {
    bool set;
    if constexpr (std::is_same_v<T, bool>)
      set = reinterpret_cast<const uint8_t*>(p)[i] != 0;  // bytes of a view need not be 0 or 1
    else if constexpr (std::is_same_v<T, ComplexHalf>)
      set = p[i].re != 0 || p[i].im != 0;
    else if constexpr (kIsComplex<T>)
      set = p[i].real() != 0 || p[i].imag() != 0;
    else
      set = p[i] != 0;
    bits |= uint64_t{set} << i;
  }
  return bits;
}

template <class T>
uint64_t full_word(const T* p) {
  // Complex numbers take the slow way; so do float8 types in which 0x80 is NaN or which have no zero.
  constexpr bool kPlainZero = !kIsComplex<T> && !std::is_same_v<T, Float8E8M0FNU> &&
                              !std::is_same_v<T, Float8E5M2FNUZ> && !std::is_same_v<T, Float8E4M3FNUZ>;
  if constexpr (kPlainZero)
    return word_of < sizeof(T), kIsSmallFloat<T> || std::is_floating_point_v < T >> (reinterpret_cast<const char*>(p));
  else
    return bits_of(p, 64);
}

struct BitPositions {
  int64_t* out;
  int64_t column;  // elements between columns
  int64_t row;     // elements between rows
  int64_t limit;   // rows that fit
};

// Writes the coordinates of the set bits of words [begin, end), the first of them being row `at`.
void write_positions(const NonzeroBits& bits, int64_t begin, int64_t end, IntSpan sizes, int64_t at, BitPositions to) {
  const auto rank = static_cast<int>(sizes.size());
  if (rank == 0) return;
  if (rank == 1) {
    for (int64_t w = begin; w < end; ++w)
      for (uint64_t word = bits.word(w); word; word &= word - 1) {
        if (at >= to.limit) return;
        to.out[at++ * to.row] = w * 64 + std::countr_zero(word);
      }
    return;
  }
  // Coordinates of the row (all dimensions but the last) that holds the current bit.
  const int64_t width = sizes[rank - 1];
  std::array<int64_t, Tensor::kMaxRank> coordinates;
  int64_t row = begin * 64 / width;
  int64_t row_end = (row + 1) * width;
  for (int64_t d = rank - 2, rest = row; d >= 0; --d) {
    coordinates[d] = rest % sizes[d];
    rest /= sizes[d];
  }
  for (int64_t w = begin; w < end; ++w)
    for (uint64_t word = bits.word(w); word; word &= word - 1) {
      if (at >= to.limit) return;
      const int64_t position = w * 64 + std::countr_zero(word);
      if (position >= row_end) {
        int64_t ahead = (position - row_end) / width + 1;
        row_end += ahead * width;
        for (int d = rank - 2; ahead > 0; --d) {
          coordinates[d] += ahead;
          if (d == 0 || coordinates[d] < sizes[d]) break;
          ahead = coordinates[d] / sizes[d];
          coordinates[d] %= sizes[d];
        }
      }
      int64_t* out = to.out + at++ * to.row;
      for (int d = 0; d < rank - 1; ++d) out[d * to.column] = coordinates[d];
      out[(rank - 1) * to.column] = position - (row_end - width);
    }
}

void write_all_positions(const NonzeroBits& bits, IntSpan sizes, BitPositions to) {
  parallel_for(0, bits.blocks(), 2, [&](int64_t begin, int64_t end) noexcept {
    write_positions(bits, begin * NonzeroBits::kBlock, std::min(end * NonzeroBits::kBlock, bits.words()), sizes,
                    bits.before_block(begin), to);
  });
}

}  // namespace

NonzeroBits::NonzeroBits(const Tensor& tensor) {
  SCONCE_CHECK(tensor.is_cpu(), kUnsupported, "nonzero: tensors on ", to_string(tensor.device()),
               " need the CUDA side of the runtime");
  const Tensor packed = contiguous(tensor);
  const int64_t n = packed.numel();
  words_ = (n + 63) / 64;
  const int64_t block_count = blocks();
  bits_ = Tensor::empty({&words_, 1}, DType::kInt64);
  before_ = Tensor::empty({&block_count, 1}, DType::kInt64);
  auto* bits = bits_.data_as<uint64_t>();
  auto* before = before_.data_as<int64_t>();
  dispatch_all(packed.dtype(), "nonzero", [&]<class T>() {
    const T* data = packed.data_as<T>();
    parallel_for(0, block_count, 2, [=, this](int64_t begin, int64_t end) noexcept {
      for (int64_t b = begin; b < end; ++b) {
        int64_t set = 0;
        const int64_t last = std::min((b + 1) * kBlock, words_);
        for (int64_t w = b * kBlock; w < last; ++w) {
          bits[w] = (w + 1) * 64 <= n ? full_word(data + w * 64) : bits_of(data + w * 64, n - w * 64);
          set += std::popcount(bits[w]);
        }
        before[b] = set;
      }
    });
  });
  for (int64_t b = 0; b < block_count; ++b) count_ += std::exchange(before[b], count_);
}

Tensor nonzero_positions(const NonzeroBits& bits, IntSpan sizes) {
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t shape[2] = {bits.count(), rank};
  const int64_t strides[2] = {1, bits.count()};
  Tensor out = Tensor::empty_strided(shape, strides, DType::kInt64);
  write_all_positions(bits, sizes, {out.data_as<int64_t>(), bits.count(), 1, bits.count()});
  return out;
}

namespace cpu {

// int64 [n, rank], strides [1, n]: stored by columns, as ATen's is.
Tensor nonzero(const Tensor& self) { return nonzero_positions(NonzeroBits(self), self.sizes()); }

// int64 [size, rank], row-major: the first `size` positions, the rest filled.
Tensor nonzero_static(const Tensor& self, int64_t size, int64_t fill_value) {
  SCONCE_CHECK(size >= 0, kInvalidArgument, "nonzero_static: 'size' must be an non-negative integer, got ", size);
  const NonzeroBits bits(self);
  const int64_t shape[2] = {size, self.dim()};
  Tensor out = Tensor::empty(shape, DType::kInt64);
  write_all_positions(bits, self.sizes(), {out.data_as<int64_t>(), 1, self.dim(), size});
  if (bits.count() < size)
    std::fill(out.data_as<int64_t>() + bits.count() * self.dim(), out.data_as<int64_t>() + out.numel(), fill_value);
  return out;
}

}  // namespace cpu

}  // namespace sconce
