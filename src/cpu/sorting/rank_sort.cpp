#include "src/cpu/sorting/rank_sort.h"

#include <immintrin.h>

#include <algorithm>
#include <limits>

namespace sconce {
namespace {

template <class Key>
struct Vectors;
template <>
struct Vectors<uint32_t> {
  using Rank = int32_t;
  static __m256i spread(int64_t x) { return _mm256_set1_epi32(static_cast<int32_t>(x)); }
  static __m256i numbers() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
  static __m256i add(__m256i a, __m256i b) { return _mm256_add_epi32(a, b); }
  static __m256i subtract(__m256i a, __m256i b) { return _mm256_sub_epi32(a, b); }
  static __m256i greater(__m256i a, __m256i b) { return _mm256_cmpgt_epi32(a, b); }
  static __m256i equal(__m256i a, __m256i b) { return _mm256_cmpeq_epi32(a, b); }
};
template <>
struct Vectors<uint64_t> {
  using Rank = int64_t;
  static __m256i spread(int64_t x) { return _mm256_set1_epi64x(x); }
  static __m256i numbers() { return _mm256_setr_epi64x(0, 1, 2, 3); }
  static __m256i add(__m256i a, __m256i b) { return _mm256_add_epi64(a, b); }
  static __m256i subtract(__m256i a, __m256i b) { return _mm256_sub_epi64(a, b); }
  static __m256i greater(__m256i a, __m256i b) { return _mm256_cmpgt_epi64(a, b); }
  static __m256i equal(__m256i a, __m256i b) { return _mm256_cmpeq_epi64(a, b); }
};

// Ranks of a vector of neighbours from `at`. Equal elements before them count as smaller, those after do not.
template <class Key>
__m256i rank_of(const Key* keys, int64_t at, int64_t n) noexcept {
  using V = Vectors<Key>;
  using Rank = typename V::Rank;
  constexpr int64_t kLanes = 32 / sizeof(Key);
  const __m256i flip = V::spread(std::numeric_limits<Rank>::min());  // makes comparisons of signed numbers right
  const auto key = [&](int64_t j) { return _mm256_xor_si256(V::spread(static_cast<Rank>(keys[j])), flip); };
  const __m256i own = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys + at)), flip);
  __m256i above = _mm256_setzero_si256(), below = _mm256_setzero_si256();  // negative counts
  for (int64_t j = 0; j < at; ++j) above = V::add(above, V::greater(key(j), own));
  const int64_t within = std::min(at + kLanes, n);
  for (int64_t j = at; j < within; ++j) {
    const __m256i other = key(j), later = V::greater(V::numbers(), V::spread(j - at));
    const __m256i tie = _mm256_and_si256(V::equal(own, other), later);
    below = V::add(below, _mm256_or_si256(V::greater(own, other), tie));
  }
  for (int64_t j = within; j < n; ++j) below = V::add(below, V::greater(own, key(j)));
  // at + above: those before that are not greater; minus below: the others that are smaller.
  return V::subtract(V::add(V::spread(at), above), below);
}

template <class Key>
void sort_ranks(const Key* keys, int64_t n, int64_t* order) noexcept {
  constexpr int64_t kLanes = 32 / sizeof(Key);
  alignas(32) typename Vectors<Key>::Rank rank[kLanes];
  for (int64_t at = 0; at < n; at += kLanes) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(rank), rank_of(keys, at, n));
    const int64_t count = std::min(kLanes, n - at);
    for (int64_t i = 0; i < count; ++i) order[rank[i]] = at + i;
  }
}

}  // namespace

void rank_sort(const uint32_t* keys, int64_t n, int64_t* order) noexcept { sort_ranks(keys, n, order); }
void rank_sort(const uint64_t* keys, int64_t n, int64_t* order) noexcept { sort_ranks(keys, n, order); }

}  // namespace sconce
