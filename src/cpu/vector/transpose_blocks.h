// Transposition for packing. Internal to each translation unit, which may be compiled for other instruction sets.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace sconce {
namespace {

inline __m128 load4(const char* from) { return _mm_loadu_ps(reinterpret_cast<const float*>(from)); }

// An 8 x 8 block of 4-byte elements, columns to rows: column j starts at from(j), row k of the result at to(k).
template <class From, class To>
inline void transpose8(const From& from, const To& to) {
  __m256 r[8], t[8];
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) {
    const char *low = from(i), *high = from(i + 4);
    r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(load4(low)), load4(high), 1);
    r[i + 4] = _mm256_insertf128_ps(_mm256_castps128_ps256(load4(low + 16)), load4(high + 16), 1);
  }
#pragma GCC unroll 2
  for (int h = 0; h < 8; h += 4) {
    t[h + 0] = _mm256_unpacklo_ps(r[h + 0], r[h + 1]);
    t[h + 1] = _mm256_unpackhi_ps(r[h + 0], r[h + 1]);
    t[h + 2] = _mm256_unpacklo_ps(r[h + 2], r[h + 3]);
    t[h + 3] = _mm256_unpackhi_ps(r[h + 2], r[h + 3]);
  }
#pragma GCC unroll 2
  for (int h = 0; h < 8; h += 4) {
    _mm256_storeu_ps(to(h + 0), _mm256_shuffle_ps(t[h], t[h + 2], 0x44));
    _mm256_storeu_ps(to(h + 1), _mm256_shuffle_ps(t[h], t[h + 2], 0xEE));
    _mm256_storeu_ps(to(h + 2), _mm256_shuffle_ps(t[h + 1], t[h + 3], 0x44));
    _mm256_storeu_ps(to(h + 3), _mm256_shuffle_ps(t[h + 1], t[h + 3], 0xEE));
  }
}

// The same; the columns are `apart` units of `unit` bytes apart.
inline void transpose8(const float* from, int64_t apart, int64_t unit, float* to, int64_t to_apart) {
  apart *= unit;
  transpose8([=](int64_t j) { return reinterpret_cast<const char*>(from) + j * apart; },
             [=](int64_t k) { return to + k * to_apart; });
}

// A 4 x 4 block of 8-byte elements, columns to rows.
inline void transpose4(const double* from, int64_t apart, double* to, int64_t to_apart) {
  const __m256d a = _mm256_loadu_pd(from), b = _mm256_loadu_pd(from + apart);
  const __m256d c = _mm256_loadu_pd(from + 2 * apart), d = _mm256_loadu_pd(from + 3 * apart);
  const __m256d ab0 = _mm256_unpacklo_pd(a, b), ab1 = _mm256_unpackhi_pd(a, b);
  const __m256d cd0 = _mm256_unpacklo_pd(c, d), cd1 = _mm256_unpackhi_pd(c, d);
  _mm256_storeu_pd(to, _mm256_permute2f128_pd(ab0, cd0, 0x20));
  _mm256_storeu_pd(to + to_apart, _mm256_permute2f128_pd(ab1, cd1, 0x20));
  _mm256_storeu_pd(to + 2 * to_apart, _mm256_permute2f128_pd(ab0, cd0, 0x31));
  _mm256_storeu_pd(to + 3 * to_apart, _mm256_permute2f128_pd(ab1, cd1, 0x31));
}

}  // namespace
}  // namespace sconce
