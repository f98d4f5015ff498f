#include "src/ops/sort_slice.h"

#include <immintrin.h>

#include <algorithm>
#include <utility>

namespace sconce {
namespace {

// Below these lengths each element's rank is counted against all others: quadratic, but without a single branch.
constexpr int64_t kRankBelow32 = 160;
constexpr int64_t kRankBelow64 = 96;

// Ranks of eight neighbours from `at`. Elements before them that are equal count as smaller, those after do not.
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

void rank_sort(const uint32_t* keys, int64_t n, int64_t* order) noexcept {
  alignas(32) int32_t rank[8];
  for (int64_t at = 0; at < n; at += 8) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(rank), rank_of(keys, at, n));
    const int64_t count = std::min<int64_t>(8, n - at);
    for (int64_t i = 0; i < count; ++i) order[rank[i]] = at + i;
  }
}

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

void rank_sort(const uint64_t* keys, int64_t n, int64_t* order) noexcept {
  alignas(32) int64_t rank[4];
  for (int64_t at = 0; at < n; at += 4) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(rank), rank_of(keys, at, n));
    const int64_t count = std::min<int64_t>(4, n - at);
    for (int64_t i = 0; i < count; ++i) order[rank[i]] = at + i;
  }
}

constexpr int kDigitBits = 8;
constexpr int kBuckets = 1 << kDigitBits;

// A key and where it came from.
struct Packed {  // 32-bit keys in the upper half of one word
  uint64_t word;
  static Packed make(uint32_t key, int64_t position) noexcept {
    return {uint64_t{key} << 32 | static_cast<uint32_t>(position)};
  }
  uint32_t key() const noexcept { return static_cast<uint32_t>(word >> 32); }
  int64_t position() const noexcept { return static_cast<uint32_t>(word); }
};
struct Pair {
  uint64_t key_;
  int64_t position_;
  static Pair make(uint64_t key, int64_t position) noexcept { return {key, position}; }
  uint64_t key() const noexcept { return key_; }
  int64_t position() const noexcept { return position_; }
};

template <class Key>
int digit(Key key, int pass) noexcept {
  return static_cast<int>(key >> (pass * kDigitBits) & (kBuckets - 1));
}

// From the least significant digit up. The first pass reads the keys, the last one writes positions; digits that are
// the same everywhere are skipped.
template <class Item, class Key>
void radix_sort(const Key* keys, int bits, int64_t n, int64_t* order, void* scratch) noexcept {
  constexpr int kMaxPasses = 8 * sizeof(Key) / kDigitBits;
  uint32_t counts[kMaxPasses][kBuckets] = {};
  const int passes = (bits + kDigitBits - 1) / kDigitBits;
  for (int64_t i = 0; i < n; ++i)
    for (int p = 0; p < passes; ++p) ++counts[p][digit(keys[i], p)];

  int used[kMaxPasses], use_count = 0;
  for (int p = 0; p < passes; ++p)
    if (counts[p][digit(keys[0], p)] != static_cast<uint32_t>(n)) used[use_count++] = p;
  if (use_count == 0) {
    for (int64_t i = 0; i < n; ++i) order[i] = i;
    return;
  }
  auto* from = static_cast<Item*>(scratch);
  auto* to = from + n;
  for (int u = 0; u < use_count; ++u) {
    const int p = used[u];
    uint32_t* const start = counts[p];
    uint32_t sum = 0;
    for (int b = 0; b < kBuckets; ++b) sum += std::exchange(start[b], sum);
    const bool first = u == 0, last = u + 1 == use_count;
    if (first && last) {
      for (int64_t i = 0; i < n; ++i) order[start[digit(keys[i], p)]++] = i;
    } else if (first) {
      for (int64_t i = 0; i < n; ++i) to[start[digit(keys[i], p)]++] = Item::make(keys[i], i);
    } else if (last) {
      for (int64_t i = 0; i < n; ++i) order[start[digit(from[i].key(), p)]++] = from[i].position();
    } else {
      for (int64_t i = 0; i < n; ++i) to[start[digit(from[i].key(), p)]++] = from[i];
    }
    std::swap(from, to);
  }
}

}  // namespace

size_t sort_scratch_bytes(size_t key_bytes, int64_t n) noexcept {
  return 2 * static_cast<size_t>(n) * (key_bytes == 4 ? sizeof(Packed) : sizeof(Pair));
}

void sort_slice(const uint32_t* keys, int bits, int64_t n, int64_t* order, void* scratch) noexcept {
  if (n < kRankBelow32) return rank_sort(keys, n, order);
  radix_sort<Packed>(keys, bits, n, order, scratch);
}

void sort_slice(const uint64_t* keys, int bits, int64_t n, int64_t* order, void* scratch) noexcept {
  if (n < kRankBelow64) return rank_sort(keys, n, order);
  radix_sort<Pair>(keys, bits, n, order, scratch);
}

}  // namespace sconce
