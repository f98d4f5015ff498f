#include <algorithm>

#include "sconce/check.h"
#include "src/device/threads.h"
#include "src/ops/copy.h"
#include "src/ops/dispatch.h"
#include "src/ops/fill.h"
#include "src/ops/slices.h"
#include "src/ops/sort.h"
#include "src/ops/sort_keys.h"
#include "src/ops/strided_loop.h"

namespace sconce::cpu {
namespace {

// Which of equal elements are taken follows from the standard algorithms that ATen runs over pairs of value and
// position. They see nothing but the results of comparisons, so over keys that compare alike they take the same ones.
template <class Key>
struct Item {
  Key key;
  uint32_t position;
};
struct Less {
  template <class Key>
  bool operator()(const Item<Key>& a, const Item<Key>& b) const noexcept {
    return a.key < b.key;
  }
};

constexpr int64_t kBlock = 256;

// std::partial_sort(begin, begin + k, end), with one difference: elements that cannot enter the heap of the k smallest
// are passed over by blocks.
template <class T>
void select_few(const T* in, int64_t n, int64_t k, bool largest, Item<SortKey<T>>* heap) noexcept {
  using Key = SortKey<T>;
  for (int64_t i = 0; i < k; ++i) heap[i] = {directed<T>(sort_key(in[i]), largest), static_cast<uint32_t>(i)};
  std::make_heap(heap, heap + k, Less());
  Key keys[kBlock];
  for (int64_t at = k; at < n; at += kBlock) {
    const int64_t count = std::min(kBlock, n - at);
    Key least = ~Key{0};
    for (int64_t i = 0; i < count; ++i) {
      keys[i] = directed<T>(sort_key(in[at + i]), largest);
      least = std::min(least, keys[i]);
    }
    if (least >= heap[0].key) continue;
    for (int64_t i = 0; i < count; ++i) {
      if (keys[i] >= heap[0].key) continue;
      // What std::partial_sort does with a smaller element: it takes the place of the top.
      heap[k] = {keys[i], static_cast<uint32_t>(at + i)};
      std::pop_heap(heap, heap + k + 1, Less());
    }
  }
  std::sort_heap(heap, heap + k, Less());
}

template <class T>
void select_many(const T* in, int64_t n, int64_t k, bool largest, bool sorted, Item<SortKey<T>>* items) noexcept {
  for (int64_t i = 0; i < n; ++i) items[i] = {directed<T>(sort_key(in[i]), largest), static_cast<uint32_t>(i)};
  std::nth_element(items, items + k - 1, items + n, Less());
  if (sorted) std::sort(items, items + k - 1, Less());
}

template <class T>
void topk_rows(const T* self, T* values, int64_t* positions, int64_t rows, int64_t n, int64_t k, bool largest,
               bool sorted) {
  const bool few = k * 64 <= n;  // ATen's threshold
  const int64_t parts = slice_parts(rows, n);
  const int64_t memory_sizes[2] = {
      parts, static_cast<int64_t>(((static_cast<size_t>(few ? k + 1 : n)) * sizeof(Item<SortKey<T>>) + 63) / 64 * 64)};
  const Tensor memory = Tensor::empty(memory_sizes, DType::kUInt8);
  parallel_for(0, parts, 1, [&](int64_t first, int64_t last) noexcept {
    for (int64_t part = first; part < last; ++part) {
      auto* items =
          reinterpret_cast<Item<SortKey<T>>*>(static_cast<std::byte*>(memory.data()) + part * memory_sizes[1]);
      const int64_t end = rows * (part + 1) / parts;
      for (int64_t row = rows * part / parts; row < end; ++row) {
        const T* in = self + row * n;
        if (few)
          select_few(in, n, k, largest, items);
        else
          select_many(in, n, k, largest, sorted, items);
        for (int64_t i = 0; i < k; ++i) {
          values[row * k + i] = in[items[i].position];
          positions[row * k + i] = items[i].position;
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
  SCONCE_CHECK(n < int64_t{1} << 32, kUnsupported, "topk: dimension of size ", n, " is too long");
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
