#include "src/cpu/sorting/tie_order.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "src/cpu/sorting/rank_sort.h"

namespace sconce {
namespace {

// The standard library's constants: lengths at which its loops stop splitting.
constexpr int64_t kSortStops = 16;
constexpr int64_t kSelectStops = 3;
// Ours: parts of up to this length are tried by rank.
constexpr int64_t kLeaf = 48;

struct Less {
  bool operator()(TieItem a, TieItem b) const noexcept { return a >> 32 < b >> 32; }
};
constexpr Less kLess;

int depth_limit(int64_t n) noexcept { return 2 * (63 - std::countl_zero(static_cast<uint64_t>(n))); }

// Bits of the elements at p that are above / below the bound. Count: 16 or 64.
template <int Count>
uint64_t above(const TieItem* p, TieItem bound) noexcept {
  const __m256i b = _mm256_set1_epi64x(bound);
  uint64_t bits = 0;
  for (int i = 0; i < Count / 4; ++i) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 4 * i));
    bits |= uint64_t(_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(x, b)))) << (4 * i);
  }
  return bits;
}
template <int Count>
uint64_t below(const TieItem* p, TieItem bound) noexcept {
  const __m256i b = _mm256_set1_epi64x(bound);
  uint64_t bits = 0;
  for (int i = 0; i < Count / 4; ++i) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 4 * i));
    bits |= uint64_t(_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(b, x)))) << (4 * i);
  }
  return bits;
}

// Elements from either end that must change sides, by blocks: the i-th of the left meets the i-th of the right.
struct Ends {
  TieItem* left;   // nothing before it is open but what left_bits names
  TieItem* right;  // nothing from here on is open but what right_bits names
  TieItem* left_block = nullptr;
  TieItem* right_block = nullptr;
  uint64_t left_bits = 0, right_bits = 0;
};

template <int Count>
void swap_blocks(Ends& e, TieItem low, TieItem high) noexcept {
  constexpr uint64_t kAll = Count == 64 ? ~uint64_t{0} : (uint64_t{1} << (Count % 64)) - 1;
  for (;;) {
    if (!e.left_bits) {
      if (e.right - e.left < Count) return;
      e.left_block = e.left;
      e.left_bits = below<Count>(e.left, low) ^ kAll;
      e.left += Count;
    }
    if (!e.right_bits) {
      if (e.right - e.left < Count) return;
      e.right -= Count;
      e.right_block = e.right;
      e.right_bits = above<Count>(e.right, high) ^ kAll;
    }
    while (e.left_bits && e.right_bits) {
      const int l = std::countr_zero(e.left_bits), r = 63 - std::countl_zero(e.right_bits);
      std::swap(e.left_block[l], e.right_block[r]);
      e.left_bits &= e.left_bits - 1;
      e.right_bits ^= uint64_t{1} << r;
    }
  }
}

// Splits [first, last) by the key of `pivot`, an item outside of it; some element on either side stops each scan.
TieItem* split(TieItem* first, TieItem* last, TieItem pivot) noexcept {
  const TieItem low = static_cast<TieItem>(static_cast<uint64_t>(pivot) & ~uint64_t{0xFFFFFFFF});
  const TieItem high = static_cast<TieItem>(static_cast<uint64_t>(pivot) | 0xFFFFFFFF);
  Ends e{first, last};
  if (last - first >= 256) swap_blocks<64>(e, low, high);
  swap_blocks<16>(e, low, high);
  TieItem* l = e.left_bits ? e.left_block + std::countr_zero(e.left_bits) : e.left;
  TieItem* r = e.right_bits ? e.right_block + 64 - std::countl_zero(e.right_bits) : e.right;
  for (;; ++l) {
    while (*l < low) ++l;
    --r;
    while (*r > high) --r;
    if (l >= r) return l;
    std::swap(*l, *r);
  }
}

// Puts the median of the second, the middle and the last element first, then splits the others by it.
TieItem* split_by_median(TieItem* first, TieItem* last) noexcept {
  TieItem *a = first + 1, *b = first + (last - first) / 2, *c = last - 1;
  TieItem* median;
  if (kLess(*a, *b))
    median = kLess(*b, *c) ? b : kLess(*a, *c) ? c : a;
  else
    median = kLess(*a, *c) ? a : kLess(*b, *c) ? c : b;
  std::swap(*first, *median);
  return split(first + 1, last, *first);
}

// Stable, as the standard library's insertion sort is. n up to Capacity. False, with nothing changed, where there are
// ties and `without_ties`.
template <int Capacity>
bool sort_leaf(TieItem* first, int64_t n, bool without_ties) noexcept {
  uint32_t keys[Capacity + 8] = {};
  int64_t order[Capacity];
  TieItem sorted[Capacity];
  for (int64_t i = 0; i < n; ++i) keys[i] = tie_key(first[i]);
  rank_sort(keys, n, order);
  for (int64_t i = 0; i < n; ++i) sorted[i] = first[order[i]];
  if (without_ties)
    for (int64_t i = 1; i < n; ++i)
      if (!kLess(sorted[i - 1], sorted[i])) return false;
  std::copy_n(sorted, n, first);
  return true;
}

// rank_leaves: parts without ties have but one order, however it is reached.
void sort_part(TieItem* first, TieItem* last, int depth, bool rank_leaves) noexcept {
  while (last - first > kSortStops) {
    if (rank_leaves && last - first <= kLeaf) {
      if (sort_leaf<kLeaf>(first, last - first, true)) return;
      rank_leaves = false;
    }
    if (depth-- == 0) return std::partial_sort(first, last, last, kLess);
    TieItem* const cut = split_by_median(first, last);
    sort_part(cut, last, depth, rank_leaves);
    last = cut;
  }
  sort_leaf<kSortStops>(first, last - first, false);
}

// The standard library's fallback for bad partitions: keeps the nth + 1 smallest items in a heap, whose top, the wanted
// item, goes last.
void heap_select(TieItem* first, TieItem* nth, TieItem* last) noexcept {
  TieItem* const end = nth + 1;
  std::make_heap(first, end, kLess);
  for (TieItem* i = end; i < last; ++i) {
    if (!kLess(*i, *first)) continue;
    // The smaller one takes the top's place: popping a heap longer by one moves the top out and sinks the last in.
    const TieItem kept = std::exchange(*end, *i);
    std::pop_heap(first, end + 1, kLess);
    *i = *end;
    if (i != end) *end = kept;
  }
  std::swap(*first, *nth);
}

}  // namespace

void tie_sort(TieItem* items, int64_t n, double density) noexcept {
  if (n > 1) sort_part(items, items + n, depth_limit(n), expected_ties(kLeaf, density) < 1);
}

void tie_nth_element(TieItem* items, int64_t nth, int64_t n) noexcept {
  TieItem *first = items, *last = items + n;
  int depth = depth_limit(n);
  while (last - first > kSelectStops) {
    if (depth-- == 0) return heap_select(first, items + nth, last);
    TieItem* const cut = split_by_median(first, last);
    if (cut <= items + nth)
      first = cut;
    else
      last = cut;
  }
  for (TieItem* i = first + 1; i < last; ++i)
    for (TieItem* j = i; j > first && kLess(*j, j[-1]); --j) std::swap(*j, j[-1]);
}

}  // namespace sconce
