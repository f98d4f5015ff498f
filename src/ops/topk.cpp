#include <algorithm>

#include "sconce/check.h"
#include "src/device/threads.h"
#include "src/ops/copy.h"
#include "src/ops/dispatch.h"
#include "src/ops/fill.h"
#include "src/ops/rank_sort.h"
#include "src/ops/slices.h"
#include "src/ops/sort.h"
#include "src/ops/sort_slice.h"
#include "src/ops/strided_loop.h"
#include "src/ops/tie_order.h"

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
      // What std::partial_sort does with a smaller element: it takes the place of the top.
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

template <class T>
void select_many(const T* in, int64_t n, int64_t k, bool largest, bool sorted, ItemOf<T>* items,
                 SortKey<T>* keys) noexcept {
  make_keys(in, n, largest, keys);
  if (sorted && n < kRanked<T>) {
    // Where there are no ties among the first k and the next one, there is but one right order.
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
  const int64_t scratch[2] = {parts, item_bytes + (few ? 0 : aligned(n + 16, sizeof(SortKey<T>)))};
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
