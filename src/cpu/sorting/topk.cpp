#include <immintrin.h>

#include <algorithm>
#include <bit>

#include "sconce/check.h"
#include "src/cpu/sorting/rank_sort.h"
#include "src/cpu/sorting/sort_slice.h"
#include "src/cpu/sorting/tie_order.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/fill.h"
#include "src/tensor/rows/slices.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

// Which of equal elements are taken follows from the standard algorithms that ATen runs over pairs of value and
// position. They see nothing but the results of comparisons, so over keys that compare alike they take the same ones.
struct WideItem {
  uint64_t key;
  int64_t position;
};
uint32_t key_of(TieItem item) noexcept { return tie_key(item); }
uint64_t key_of(const WideItem& item) noexcept { return item.key; }
int64_t position_of(TieItem item) noexcept { return tie_position(item); }
int64_t position_of(const WideItem& item) noexcept { return item.position; }
TieItem make_item(uint32_t key, int64_t position) noexcept { return tie_item(key, static_cast<uint32_t>(position)); }
WideItem make_item(uint64_t key, int64_t position) noexcept { return {key, position}; }

struct Less {
  template <class Item>
  bool operator()(const Item& a, const Item& b) const noexcept {
    return key_of(a) < key_of(b);
  }
};

template <class T>
using ItemOf = decltype(make_item(SortKey<T>{}, 0));

constexpr int64_t kBlock = 256;

// std::partial_sort(begin, begin + k, end), with one difference: elements that cannot enter the heap of the k smallest
// are passed over by blocks.
template <class T>
void select_few(const T* in, int64_t n, int64_t k, bool largest, ItemOf<T>* heap) noexcept {
  SortKey<T> keys[kBlock];
  for (int64_t at = 0; at < k; at += kBlock) {
    const int64_t count = std::min(kBlock, k - at);
    make_keys(in + at, count, largest, keys);
    for (int64_t i = 0; i < count; ++i) heap[at + i] = make_item(keys[i], at + i);
  }
  std::make_heap(heap, heap + k, Less());
  for (int64_t at = k; at < n; at += kBlock) {
    const int64_t count = std::min(kBlock, n - at);
    if (make_keys(in + at, count, largest, keys).least >= key_of(heap[0])) continue;
    for (int64_t i = 0; i < count; ++i) {
      if (keys[i] >= key_of(heap[0])) continue;
      // As in std::partial_sort, a smaller element replaces the heap's top.
      heap[k] = make_item(keys[i], at + i);
      std::pop_heap(heap, heap + k + 1, Less());
    }
  }
  std::sort_heap(heap, heap + k, Less());
}

void select_and_sort(TieItem* items, int64_t n, int64_t k, bool sorted) noexcept {
  tie_nth_element(items, k - 1, n);
  if (sorted) tie_sort(items, k - 1, 0);
}
void select_and_sort(WideItem* items, int64_t n, int64_t k, bool sorted) noexcept {
  std::nth_element(items, items + k - 1, items + n, Less());
  if (sorted) std::sort(items, items + k - 1, Less());
}

template <class T>
constexpr int64_t kRanked = std::is_same_v<SortKey<T>, uint32_t> ? kRankSort32 : kRankSort64;

// Which of 64 neighbours are at most `bound`, a bit for each.
uint64_t at_most(const uint32_t* keys, uint32_t bound) noexcept {
  const __m256i most = _mm256_set1_epi32(static_cast<int32_t>(bound));
  uint64_t bits = 0;
  for (int i = 0; i < 64; i += 8) {
    const __m256i own = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys + i));
    const __m256i taken = _mm256_cmpeq_epi32(_mm256_min_epu32(own, most), own);
    bits |= uint64_t{static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(taken)))} << i;
  }
  return bits;
}
uint64_t at_most(const uint64_t* keys, uint64_t bound) noexcept {
  const __m256i flip = _mm256_set1_epi64x(INT64_MIN),
                most = _mm256_xor_si256(_mm256_set1_epi64x(static_cast<int64_t>(bound)), flip);
  uint64_t bits = 0;
  for (int i = 0; i < 64; i += 4) {
    const __m256i own = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys + i)), flip);
    const int above = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(own, most)));
    bits |= uint64_t{static_cast<uint32_t>(above ^ 15)} << i;
  }
  return bits;
}

constexpr int64_t kMaxDistinct = 32;

// The k smallest in their order, where no two of them and of the next one are equal, so that there is but one right
// answer; else false. Without a branch on a single element: of groups of at least two elements, of which there are
// twice k or more, the k-th smallest of their least ones bounds the k-th of all from above, and is close to it.
template <class Key, class Item>
bool select_distinct(const Key* keys, int64_t n, int64_t k, Item* items) noexcept {
  constexpr int64_t kMaxGroups = 2 * kMaxDistinct, kMaxTaken = sizeof(Key) == 4 ? kRankSort32 : kRankSort64;
  const int64_t groups = (2 * k + 15) / 16 * 16;
  if (k > kMaxDistinct || n < 2 * groups) return false;
  Key least[kMaxGroups + 8];
  int64_t order[std::max(kMaxTaken, kMaxGroups)];
  for (int64_t first = 0; first < groups; first += 16) {
    Key sixteen[16];
    std::copy_n(keys + first, 16, sixteen);
    for (int64_t at = first + groups; at + 16 <= n; at += groups)
      for (int64_t i = 0; i < 16; ++i) sixteen[i] = std::min(sixteen[i], keys[at + i]);
    std::copy_n(sixteen, 16, least + first);
  }
  rank_sort(least, groups, order);
  const Key bound = least[order[k - 1]];
  Key taken[kMaxTaken + 64];
  int32_t positions[kMaxTaken + 64];
  int64_t count = 0;
  for (int64_t at = 0; at < n; at += 64) {
    uint64_t bits = at_most(keys + at, bound);
    if (n - at < 64) bits &= (uint64_t{1} << (n - at)) - 1;
    for (; bits; bits &= bits - 1, ++count) {
      const int64_t position = at + std::countr_zero(bits);
      taken[count] = keys[position];
      positions[count] = static_cast<int32_t>(position);
    }
    if (count > kMaxTaken) return false;
  }
  rank_sort(taken, count, order);
  bool tie = false;
  for (int64_t i = 1; i < std::min(k + 1, count); ++i) tie |= taken[order[i - 1]] == taken[order[i]];
  for (int64_t i = 0; i < k; ++i) items[i] = make_item(taken[order[i]], positions[order[i]]);
  return !tie;
}

template <class T>
void select_many(const T* in, int64_t n, int64_t k, bool largest, bool sorted, ItemOf<T>* items,
                 SortKey<T>* keys) noexcept {
  make_keys(in, n, largest, keys);
  if (sorted && k <= kMaxDistinct && n >= 8 * k && n >= 32) {
    if (select_distinct(keys, n, k, items)) return;
  } else if (sorted && n < kRanked<T>) {
    int64_t order[kRanked<T>];
    rank_sort(keys, n, order);
    bool tie = false;
    for (int64_t i = 1; i <= std::min(k, n - 1); ++i) tie |= keys[order[i - 1]] == keys[order[i]];
    for (int64_t i = 0; i < k; ++i) items[i] = make_item(keys[order[i]], order[i]);
    if (!tie) return;
  }
  for (int64_t i = 0; i < n; ++i) items[i] = make_item(keys[i], i);
  select_and_sort(items, n, k, sorted);
}

template <class T>
void topk_rows(const T* self, T* values, int64_t* positions, int64_t rows, int64_t n, int64_t k, bool largest,
               bool sorted) {
  const bool few = k * 64 <= n;  // ATen's threshold
  const int64_t parts = slice_parts(rows, n);
  const auto aligned = [](int64_t count, size_t each) {
    return static_cast<int64_t>((static_cast<size_t>(count) * each + 63) / 64 * 64);
  };
  const int64_t item_bytes = aligned(few ? k + 1 : n, sizeof(ItemOf<T>));
  const int64_t scratch[2] = {parts, item_bytes + (few ? 0 : aligned(n + 64, sizeof(SortKey<T>)))};
  const Tensor memory = Tensor::empty(scratch, DType::kUInt8);
  parallel_for(0, parts, 1, [&](int64_t first, int64_t last) noexcept {
    for (int64_t part = first; part < last; ++part) {
      auto* own = static_cast<std::byte*>(memory.data()) + part * scratch[1];
      auto* items = reinterpret_cast<ItemOf<T>*>(own);
      const int64_t end = rows * (part + 1) / parts;
      for (int64_t row = rows * part / parts; row < end; ++row) {
        const T* in = self + row * n;
        if (few)
          select_few(in, n, k, largest, items);
        else
          select_many(in, n, k, largest, sorted, items, reinterpret_cast<SortKey<T>*>(own + item_bytes));
        for (int64_t i = 0; i < k; ++i) {
          values[row * k + i] = in[position_of(items[i])];
          positions[row * k + i] = position_of(items[i]);
        }
      }
    }
  });
}

}  // namespace

// The k largest (or smallest) along dim and their int64 positions, row-major. Among equal values the ones that ATen
// takes, in ATen's order (it is that of std::partial_sort or std::nth_element over the slice).
std::array<Tensor, 2> topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted) {
  dim = wrap_dim("topk", dim, self.dim());
  const DType dtype = self.dtype();
  SCONCE_CHECK(k >= 0 && k <= (self.dim() > 0 ? self.size(dim) : 1), kInvalidArgument,
               "topk: selected index k out of range: ", k, " of ", self.dim() > 0 ? self.size(dim) : 1);
  SCONCE_CHECK(!is_complex(dtype) && dtype != DType::kBool, kUnsupported, "topk does not support ",
               is_complex(dtype) ? "complex" : "bool", " dtypes on CPU");
  Shape sizes(self.sizes());
  if (self.dim() > 0) sizes[static_cast<int>(dim)] = k;
  std::array<Tensor, 2> out{Tensor::empty(sizes, dtype), Tensor::empty(sizes, DType::kInt64)};
  if (self.dim() == 0) {
    copy(self, out[0]);
    zero(out[1]);
    return out;
  }
  const int64_t n = self.size(dim);
  SCONCE_CHECK(n <= kMaxSortLength, kUnsupported, "topk: dimension of size ", n, " is too long");
  dispatch_real(dtype, "topk", [&]<class T>() {
    if (out[0].numel() == 0) return;
    const int64_t rows = self.numel() / n;
    const Tensor packed = contiguous(move_last(self, dim));
    std::array<Tensor, 2> rows_out{move_last(out[0], dim), move_last(out[1], dim)};
    std::array<Tensor, 2> target = rows_out;
    for (Tensor& t : target)
      if (!t.is_contiguous()) t = Tensor::empty(t.sizes(), t.dtype());
    topk_rows(packed.data_as<T>(), target[0].data_as<T>(), target[1].data_as<int64_t>(), rows, n, k, largest, sorted);
    for (size_t i = 0; i < 2; ++i)
      if (target[i].data() != rows_out[i].data()) copy(target[i], rows_out[i]);
  });
  return out;
}

}  // namespace sconce::cpu
