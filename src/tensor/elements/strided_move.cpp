#include "src/tensor/elements/strided_move.h"

#include <immintrin.h>

#include <algorithm>

#include "src/tensor/elements/block_copy.h"
#include "src/tensor/elements/dispatch.h"

namespace sconce {
namespace {

void copy_rows(StridedRows s, StridedRows d, int64_t bytes, int64_t rows) noexcept {
  for (int64_t j = 0; j < rows; ++j) copy_block(s.data + j * s.outer, d.data + j * d.outer, bytes);
}

template <class E>
void move_any(StridedRows s, StridedRows d, int64_t inner, int64_t outer) noexcept {
  for (int64_t j = 0; j < outer; ++j) {
    const char* from = s.data + j * s.outer;
    char* to = d.data + j * d.outer;
    if (s.inner == 0) {
      const E value = load_unaligned<E>(from);
      if (d.inner == sizeof(E)) {
        fill_run(to, value, inner);
      } else {
        for (int64_t i = 0; i < inner; ++i) store_unaligned(to + i * d.inner, value);
      }
    } else if (d.inner == sizeof(E)) {
      int64_t i = 0;
      for (; i + 4 <= inner; i += 4) {
        const E a = load_unaligned<E>(from), b = load_unaligned<E>(from + s.inner),
                c = load_unaligned<E>(from + 2 * s.inner), e = load_unaligned<E>(from + 3 * s.inner);
        from += 4 * s.inner;
        store_unaligned(to, a);
        store_unaligned(to + sizeof(E), b);
        store_unaligned(to + 2 * sizeof(E), c);
        store_unaligned(to + 3 * sizeof(E), e);
        to += 4 * sizeof(E);
      }
      for (; i < inner; ++i, from += s.inner, to += sizeof(E)) store_unaligned(to, load_unaligned<E>(from));
    } else {
      for (int64_t i = 0; i < inner; ++i, from += s.inner, to += d.inner) store_unaligned(to, load_unaligned<E>(from));
    }
  }
}

template <size_t Bytes>
__m256i unpack_low(__m256i a, __m256i b) noexcept {
  if constexpr (Bytes == 1) return _mm256_unpacklo_epi8(a, b);
  if constexpr (Bytes == 2) return _mm256_unpacklo_epi16(a, b);
  if constexpr (Bytes == 4) return _mm256_unpacklo_epi32(a, b);
  if constexpr (Bytes == 8) return _mm256_unpacklo_epi64(a, b);
}
template <size_t Bytes>
__m256i unpack_high(__m256i a, __m256i b) noexcept {
  if constexpr (Bytes == 1) return _mm256_unpackhi_epi8(a, b);
  if constexpr (Bytes == 2) return _mm256_unpackhi_epi16(a, b);
  if constexpr (Bytes == 4) return _mm256_unpackhi_epi32(a, b);
  if constexpr (Bytes == 8) return _mm256_unpackhi_epi64(a, b);
}

// Source: 2K lines of K packed elements (16 bytes), `pitch` apart; destination: K rows of 2K elements. K is 16 / Bytes.
// Each half of a register holds one line; log2(K) rounds of interleaving line i with line i + K/2 transpose.
template <size_t Bytes>
void transpose_block(const char* source, int64_t pitch, char* destination, int64_t row_pitch) noexcept {
  constexpr int K = 16 / Bytes;
  __m256i r[K], t[K];
  for (int i = 0; i < K; ++i)
    r[i] = _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i * pitch))),
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + (i + K) * pitch)), 1);
  for (int round = 1; round < K; round *= 2) {
    for (int i = 0; i < K / 2; ++i) {
      t[2 * i] = unpack_low<Bytes>(r[i], r[i + K / 2]);
      t[2 * i + 1] = unpack_high<Bytes>(r[i], r[i + K / 2]);
    }
    for (int i = 0; i < K; ++i) r[i] = t[i];
  }
  for (int i = 0; i < K; ++i) _mm256_storeu_si256(reinterpret_cast<__m256i*>(destination + i * row_pitch), r[i]);
}

// Source columns packed (outer == itemsize), destination rows packed (inner == itemsize). Walked in tiles whose lines
// stay in the first-level cache on both sides.
template <class E>
void transpose(StridedRows s, StridedRows d, int64_t inner, int64_t outer) noexcept {
  if constexpr (sizeof(E) == 16) {
    constexpr int64_t kTile = 16;
    for (int64_t j0 = 0; j0 < outer; j0 += kTile)
      for (int64_t i0 = 0; i0 < inner; i0 += kTile)
        move_any<E>({s.data + i0 * s.inner + j0 * s.outer, s.inner, s.outer},
                    {d.data + i0 * d.inner + j0 * d.outer, d.inner, d.outer}, std::min(kTile, inner - i0),
                    std::min(kTile, outer - j0));
  } else {
    constexpr int64_t kItem = sizeof(E);
    constexpr int64_t kColumns = 16 / kItem, kRows = 2 * kColumns;
    // Processes neighbouring cache lines of the source together; only one if consecutive lines share a cache set.
    const bool crowded = s.inner % 1024 == 0 || d.outer % 1024 == 0;
    const int64_t tile = std::max<int64_t>((crowded ? 64 : 256) / kItem, kRows);
    for (int64_t j0 = 0; j0 < outer; j0 += tile) {
      const int64_t j1 = std::min(outer, j0 + tile);
      const int64_t full_j = j0 + (j1 - j0) / kColumns * kColumns;
      int64_t i = 0;
      for (; i + kRows <= inner; i += kRows) {
        for (int64_t j = j0; j < full_j; j += kColumns)
          transpose_block<sizeof(E)>(s.data + i * s.inner + j * kItem, s.inner, d.data + i * kItem + j * d.outer,
                                     d.outer);
        if (full_j < j1)
          move_any<E>({s.data + i * s.inner + full_j * kItem, s.inner, kItem},
                      {d.data + i * kItem + full_j * d.outer, kItem, d.outer}, kRows, j1 - full_j);
      }
      if (i < inner)
        move_any<E>({s.data + i * s.inner + j0 * kItem, s.inner, kItem},
                    {d.data + i * kItem + j0 * d.outer, kItem, d.outer}, inner - i, j1 - j0);
    }
  }
}

}  // namespace

void move_rectangle(size_t itemsize, StridedRows source, StridedRows destination, int64_t inner_count,
                    int64_t outer_count) noexcept {
  const auto item = static_cast<int64_t>(itemsize);
  if (source.inner == item && destination.inner == item)
    return copy_rows(source, destination, inner_count * item, outer_count);
  dispatch_bytes(itemsize, [&]<class E>() {
    if (destination.inner == item && source.outer == item && source.inner != 0 && inner_count > 1 && outer_count > 1)
      transpose<E>(source, destination, inner_count, outer_count);
    else
      move_any<E>(source, destination, inner_count, outer_count);
  });
}

}  // namespace sconce
