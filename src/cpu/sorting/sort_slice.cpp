#include "src/cpu/sorting/sort_slice.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "src/cpu/sorting/rank_sort.h"
#include "src/cpu/sorting/tie_order.h"

namespace sconce {
namespace {

// A key and where it came from.
struct Packed {
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

// From the least significant digit up. The first pass reads the keys, the last one writes positions; digits that are
// the same everywhere are skipped. Stable.
template <class Item, int Width, int Passes, class Key>
void radix_passes(const Key* keys, int64_t n, int64_t* order, void* scratch) noexcept {
  constexpr int kBuckets = 1 << Width;
  const auto digit = [](Key key, int pass) { return static_cast<size_t>(key >> (pass * Width) & (kBuckets - 1)); };
  uint32_t counts[Passes][kBuckets] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int p = 0; p < Passes; ++p) ++counts[p][digit(keys[i], p)];

  int used[Passes], use_count = 0;
  for (int p = 0; p < Passes; ++p)
    if (counts[p][digit(keys[0], p)] != static_cast<uint32_t>(n)) used[use_count++] = p;
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

// Wider digits save passes where there are enough keys to pay for their tables.
constexpr int64_t kWideDigitsFrom = 6000;

void radix_sort(const uint32_t* keys, int bits, int64_t n, int64_t* order, void* scratch) noexcept {
  if (bits <= 8) return radix_passes<Packed, 8, 1>(keys, n, order, scratch);
  if (n >= kWideDigitsFrom) {
    if (bits <= 11) return radix_passes<Packed, 11, 1>(keys, n, order, scratch);
    if (bits > 16 && bits <= 22) return radix_passes<Packed, 11, 2>(keys, n, order, scratch);
    if (bits > 24) return radix_passes<Packed, 11, 3>(keys, n, order, scratch);
  }
  if (bits <= 16) return radix_passes<Packed, 8, 2>(keys, n, order, scratch);
  if (bits <= 24) return radix_passes<Packed, 8, 3>(keys, n, order, scratch);
  radix_passes<Packed, 8, 4>(keys, n, order, scratch);
}

// Sorts by the upper half of the significant bits, then the few runs whose upper halves are equal by the whole key.
// False where such runs are long.
bool sort_by_upper_half(const uint64_t* keys, uint32_t* upper, int shift, int64_t n, int64_t* order,
                        void* scratch) noexcept {
  constexpr int64_t kLongRun = 32;
  for (int64_t i = 0; i < n; ++i) upper[i] = static_cast<uint32_t>(keys[i] >> shift);
  radix_sort(upper, 32, n, order, scratch);
  for (int64_t i = 0; i < n;) {
    int64_t end = i + 1;
    while (end < n && upper[order[end]] == upper[order[i]]) ++end;
    if (end - i > kLongRun) return false;
    for (int64_t k = i + 1; k < end; ++k) {
      const int64_t moved = order[k];
      int64_t at = k;
      for (; at > i && keys[order[at - 1]] > keys[moved]; --at) order[at] = order[at - 1];
      order[at] = moved;
    }
    i = end;
  }
  return true;
}

template <class Key>
bool has_ties(const Key* keys, const int64_t* order, int64_t n) noexcept {
  for (int64_t i = 1; i < n; ++i)
    if (keys[order[i]] == keys[order[i - 1]]) return true;
  return false;
}

// std::sort keeps the order of equal elements up to this length.
constexpr int64_t kStableUpTo = 16;

}  // namespace

size_t sort_scratch_bytes(size_t key_bytes, int64_t n) noexcept {
  const auto count = static_cast<size_t>(n);
  return key_bytes == 4 ? 2 * count * sizeof(Packed) : 2 * count * sizeof(Pair);
}

void sort_slice(uint32_t* keys, KeyRange<uint32_t> range, int64_t n, bool stable, int64_t* order,
                void* scratch) noexcept {
  const uint32_t span = range.greatest - range.least;
  const bool ties_matter = !stable && n > kStableUpTo;
  const double density = static_cast<double>(n) / (span + 1.0);
  if (!ties_matter || expected_ties(n, density) < 2) {
    if (n < kRankSort32) {
      rank_sort(keys, n, order);
    } else if (span == 0) {
      for (int64_t i = 0; i < n; ++i) order[i] = i;
    } else {
      for (int64_t i = 0; i < n; ++i) keys[i] -= range.least;
      radix_sort(keys, std::bit_width(span), n, order, scratch);
    }
    if (!ties_matter || !has_ties(keys, order, n)) return;
  }
  auto* items = static_cast<TieItem*>(scratch);
  for (int64_t i = 0; i < n; ++i) items[i] = tie_item(keys[i], static_cast<uint32_t>(i));
  tie_sort(items, n, density);
  for (int64_t i = 0; i < n; ++i) order[i] = tie_position(items[i]);
}

void sort_slice(uint64_t* keys, KeyRange<uint64_t> range, int64_t n, bool stable, int64_t* order,
                void* scratch) noexcept {
  const uint64_t span = range.greatest - range.least;
  if (span <= UINT32_MAX) {
    auto* narrow = reinterpret_cast<uint32_t*>(static_cast<char*>(scratch) + sort_scratch_bytes(4, n));
    for (int64_t i = 0; i < n; ++i) narrow[i] = static_cast<uint32_t>(keys[i] - range.least);
    return sort_slice(narrow, {0, static_cast<uint32_t>(span)}, n, stable, order, scratch);
  }
  if (n < kRankSort64) {
    rank_sort(keys, n, order);
  } else {
    for (int64_t i = 0; i < n; ++i) keys[i] -= range.least;
    auto* upper = reinterpret_cast<uint32_t*>(static_cast<char*>(scratch) + sort_scratch_bytes(4, n));
    if (!sort_by_upper_half(keys, upper, std::bit_width(span) - 32, n, order, scratch))
      radix_passes<Pair, 8, 8>(keys, n, order, scratch);
  }
  if (stable || n <= kStableUpTo || !has_ties(keys, order, n)) return;
  auto* items = static_cast<Pair*>(scratch);
  for (int64_t i = 0; i < n; ++i) items[i] = Pair::make(keys[i], i);
  std::sort(items, items + n, [](const Pair& a, const Pair& b) { return a.key_ < b.key_; });
  for (int64_t i = 0; i < n; ++i) order[i] = items[i].position_;
}

}  // namespace sconce
