#include "src/cpu/sorting/rank_sort.h"

#include <immintrin.h>

#include <algorithm>

namespace sconce {
namespace {

// Ranks of eight neighbours from `at`. Equal elements before them count as smaller, those after do not.
__m256i rank_of(const uint32_t* keys, int64_t at, int64_t n) noexcept {
  const __m256i flip = _mm256_set1_epi32(INT32_MIN);
  const auto spread = [&](int64_t j) {
    return _mm256_xor_si256(_mm256_set1_epi32(static_cast<int32_t>(keys[j])), flip);
  };
  const __m256i own = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys + at)), flip);
  __m256i above = _mm256_setzero_si256(), below = _mm256_setzero_si256();  // negative counts
  for (int64_t j = 0; j < at; ++j) above = _mm256_add_epi32(above, _mm256_cmpgt_epi32(spread(j), own));
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const int64_t within = std::min<int64_t>(at + 8, n);
  for (int64_t j = at; j < within; ++j) {
    const __m256i other = spread(j);
    const __m256i later = _mm256_cmpgt_epi32(lane, _mm256_set1_epi32(static_cast<int32_t>(j - at)));
    const __m256i tie = _mm256_and_si256(_mm256_cmpeq_epi32(own, other), later);
    below = _mm256_add_epi32(below, _mm256_or_si256(_mm256_cmpgt_epi32(own, other), tie));
  }
  for (int64_t j = within; j < n; ++j) below = _mm256_add_epi32(below, _mm256_cmpgt_epi32(own, spread(j)));
  // at + above: those before that are not greater; minus below: the others that are smaller.
  return _mm256_sub_epi32(_mm256_add_epi32(_mm256_set1_epi32(static_cast<int32_t>(at)), above), below);
}

}  // namespace

void rank_sort(const uint32_t* keys, int64_t n, int64_t* order) noexcept {
  alignas(32) int32_t rank[8];
  for (int64_t at = 0; at < n; at += 8) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(rank), rank_of(keys, at, n));
    const int64_t count = std::min<int64_t>(8, n - at);
    for (int64_t i = 0; i < count; ++i) order[rank[i]] = at + i;
  }
}

namespace {

__m256i rank_of(const uint64_t* keys, int64_t at, int64_t n) noexcept {
  const __m256i flip = _mm256_set1_epi64x(INT64_MIN);
  const auto spread = [&](int64_t j) {
    return _mm256_xor_si256(_mm256_set1_epi64x(static_cast<int64_t>(keys[j])), flip);
  };
  const __m256i own = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys + at)), flip);
  __m256i above = _mm256_setzero_si256(), below = _mm256_setzero_si256();
  for (int64_t j = 0; j < at; ++j) above = _mm256_add_epi64(above, _mm256_cmpgt_epi64(spread(j), own));
  const __m256i lane = _mm256_setr_epi64x(0, 1, 2, 3);
  const int64_t within = std::min<int64_t>(at + 4, n);
  for (int64_t j = at; j < within; ++j) {
    const __m256i other = spread(j);
    const __m256i later = _mm256_cmpgt_epi64(lane, _mm256_set1_epi64x(j - at));
    const __m256i tie = _mm256_and_si256(_mm256_cmpeq_epi64(own, other), later);
    below = _mm256_add_epi64(below, _mm256_or_si256(_mm256_cmpgt_epi64(own, other), tie));
  }
  for (int64_t j = within; j < n; ++j) below = _mm256_add_epi64(below, _mm256_cmpgt_epi64(own, spread(j)));
  return _mm256_sub_epi64(_mm256_add_epi64(_mm256_set1_epi64x(at), above), below);
}

}  // namespace

void rank_sort(const uint64_t* keys, int64_t n, int64_t* order) noexcept {
  alignas(32) int64_t rank[4];
  for (int64_t at = 0; at < n; at += 4) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(rank), rank_of(keys, at, n));
    const int64_t count = std::min<int64_t>(4, n - at);
    for (int64_t i = 0; i < count; ++i) order[rank[i]] = at + i;
  }
}

}  // namespace sconce
