#include "src/cpu/sorting/order_statistics.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "sconce/check.h"
#include "src/cpu/sorting/sort_keys.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/rows/slices.h"
#include "src/tensor/rules/sorting.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

template <class Key>
struct Item {
  Key key;
  int64_t position;
};

// Hoare's selection with the median of first, middle and last as pivot. Which of equal elements ends at k depends on
// every exchange, so these are made in ATen's order.
template <class Key>
void select(Item<Key>* items, int64_t n, int64_t k) noexcept {
  const auto order = [&](int64_t low, int64_t high) {
    if (items[low].key > items[high].key) std::swap(items[low], items[high]);
  };
  int64_t left = 0, right = n - 1;
  while (right > left) {
    if (right == left + 1) return order(left, right);
    std::swap(items[left + (right - left) / 2], items[left + 1]);
    order(left + 1, right);
    order(left, right);
    order(left + 1, left);
    const Key pivot = items[left].key;
    int64_t i = left + 1, j = right;
    for (;;) {
      while (items[++i].key < pivot) {
      }
      while (items[--j].key > pivot) {
      }
      if (j < i) break;
      std::swap(items[i], items[j]);
    }
    std::swap(items[left], items[j]);
    if (j <= k) left = i;
    if (j >= k) right = j - 1;
  }
}

// Sizes of a reduction over dim.
// Calls choose(items, slice) -> position for every slice along dim, over items in the order of the slice.
template <class T, class Choose>
std::array<Tensor, 2> choose_along(const Tensor& self, int64_t dim, bool keepdim, const Choose& choose) {
  using Items = Item<SortKey<T>>;
  const Shape shape = without_dim(self, dim, keepdim);
  Tensor values = Tensor::empty(shape, self.dtype()), positions = Tensor::empty(shape, DType::kInt64);
  if (values.numel() == 0) return {std::move(values), std::move(positions)};
  const Tensor rows = self.dim() == 0 ? self : contiguous(move_last(self, dim));
  const int64_t n = self.dim() == 0 ? 1 : self.size(dim), count = values.numel(), parts = slice_parts(count, 8 * n);
  const int64_t scratch_bytes = parts * n * static_cast<int64_t>(sizeof(Items));
  const Tensor scratch = Tensor::empty(IntSpan(&scratch_bytes, 1), DType::kUInt8);
  const T* in = rows.data_as<T>();
  T* value = values.data_as<T>();
  auto* position = positions.data_as<int64_t>();
  parallel_for(0, parts, 1, [&](int64_t first, int64_t last) noexcept {
    for (int64_t part = first; part < last; ++part) {
      Items* const items = reinterpret_cast<Items*>(scratch.data()) + part * n;
      for (int64_t r = count * part / parts; r < count * (part + 1) / parts; ++r) {
        const T* slice = in + r * n;
        for (int64_t i = 0; i < n; ++i) items[i] = {sort_key(slice[i]), i};
        position[r] = choose(items, slice);
        value[r] = slice[position[r]];
      }
    }
  });
  return {std::move(values), std::move(positions)};
}

template <class T>
bool is_nan(T value) noexcept {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return value != value;
}

// Calls std::nth_element as ATen does: otherwise the sign of a zero could differ.
template <class T>
T median_of(const T* in, int64_t n, bool skip_nans, T* scratch) {
  std::copy_n(in, n, scratch);
  const int64_t nans = std::count_if(in, in + n, [](T v) { return is_nan(v); });
  if (nans == n || (nans > 0 && !skip_nans)) return *std::find_if(in, in + n, [](T v) { return is_nan(v); });
  T* const middle = scratch + (n - nans - 1) / 2;
  if (nans == 0)
    std::nth_element(scratch, middle, scratch + n, [](T a, T b) { return a < b; });
  else
    std::nth_element(scratch, middle, scratch + n, [](T a, T b) { return (!is_nan(a) && is_nan(b)) || a < b; });
  return *middle;
}

Tensor median_over_all(std::string_view name, const Tensor& self, bool skip_nans) {
  Tensor out = Tensor::empty({}, self.dtype());
  dispatch_real(self.dtype(), name, [&]<class T>() {
    if (self.numel() == 0) {
      // ATen converts NaN to the dtype: integers get what x86 gives.
      Tensor nan = Tensor::empty({}, DType::kFloat32);
      *nan.data_as<float>() = std::numeric_limits<float>::quiet_NaN();
      copy(nan, out);
      return;
    }
    // In the order of memory, as ATen's clone.
    const Tensor packed = clone(self), scratch = Tensor::empty(packed.sizes(), packed.dtype());
    *out.data_as<T>() = median_of(packed.data_as<T>(), packed.numel(), skip_nans, scratch.data_as<T>());
  });
  return out;
}

std::array<Tensor, 2> median_along(std::string_view name, const Tensor& self, int64_t dim, bool keepdim,
                                   bool skip_nans) {
  dim = wrap_dim(name, dim, self.dim());
  check_dim_not_empty(name, self, dim);
  const int64_t n = self.dim() == 0 ? 1 : self.size(dim);
  return dispatch_real(self.dtype(), name, [&]<class T>() {
    const Shape shape = without_dim(self, dim, keepdim);
    Tensor values = Tensor::empty(shape, self.dtype()), positions = Tensor::empty(shape, DType::kInt64);
    if (values.numel() == 0) return std::array<Tensor, 2>{std::move(values), std::move(positions)};
    const Tensor rows = self.dim() == 0 ? self : contiguous(move_last(self, dim));
    const int64_t count = values.numel(), parts = slice_parts(count, 8 * n), scratch_size = parts * n;
    const Tensor scratch = Tensor::empty(IntSpan(&scratch_size, 1), DType::kInt64);
    const T* const in = rows.data_as<T>();
    parallel_for(0, parts, 1, [&](int64_t first, int64_t last) noexcept {
      for (int64_t part = first; part < last; ++part) {
        int64_t* const order = scratch.data_as<int64_t>() + part * n;
        for (int64_t r = count * part / parts; r < count * (part + 1) / parts; ++r) {
          const T* const slice = in + r * n;
          const int64_t nans = std::count_if(slice, slice + n, [](T v) { return is_nan(v); });
          int64_t at;
          if (nans > 0 && !skip_nans) {
            at = std::find_if(slice, slice + n, [](T v) { return is_nan(v); }) - slice;
          } else {
            std::iota(order, order + n, int64_t{0});
            int64_t* const middle = order + std::max<int64_t>(n - nans - 1, 0) / 2;
            // Of equal elements, the first counts as smaller.
            std::nth_element(order, middle, order + n, [slice](int64_t a, int64_t b) {
              return slice[a] < slice[b] || (slice[a] == slice[b] && a < b) || (is_nan(slice[b]) && !is_nan(slice[a]));
            });
            at = *middle;
          }
          values.data_as<T>()[r] = slice[at];
          positions.data_as<int64_t>()[r] = at;
        }
      }
    });
    return std::array<Tensor, 2>{std::move(values), std::move(positions)};
  });
}

}  // namespace

std::array<Tensor, 2> median_dim(const Tensor& self, int64_t dim, bool keepdim) {
  return median_along("median", self, dim, keepdim, false);
}
std::array<Tensor, 2> nanmedian_dim(const Tensor& self, int64_t dim, bool keepdim) {
  return median_along("nanmedian", self, dim, keepdim, true);
}

// The k-th smallest (from 1) along dim and its int64 position. Of equal elements the one that ATen's selection ends on.
std::array<Tensor, 2> kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  dim = wrap_dim("kthvalue", dim, self.dim());
  const int64_t n = self.dim() == 0 ? 1 : self.size(dim);
  check_dim_not_empty("kthvalue", self, dim);
  SCONCE_CHECK(k >= 1 && k <= n, kInvalidArgument, "kthvalue(): selected number k out of range for dimension ", dim);
  return dispatch_real(self.dtype(), "kthvalue", [&]<class T>() {
    return choose_along<T>(self, dim, keepdim, [n, k](auto* items, const T*) noexcept {
      select(items, n, k - 1);
      return items[k - 1].position;
    });
  });
}

// The median of all elements, the lower one if there are two: a 0-d tensor. NaN if there is a NaN or no element.
Tensor median(const Tensor& self) { return median_over_all("median", self, false); }
// The median of all elements that are not NaN; NaN if there are none.
Tensor nanmedian(const Tensor& self) { return median_over_all("nanmedian", self, true); }

// The most frequent element along dim, the smallest of several, and the position ATen's sort leaves last among equals.
// NaNs are different from each other and, in slices of more than 16, greatest; in shorter ones they part the slice, as
// in ATen.
std::array<Tensor, 2> mode(const Tensor& self, int64_t dim, bool keepdim) {
  dim = wrap_dim("mode", dim, self.dim());
  const int64_t n = self.dim() == 0 ? 1 : self.size(dim);
  check_dim_not_empty("mode", self, dim);
  return dispatch_real_bool(self.dtype(), "mode", [&]<class T>() {
    return choose_along<T>(self, dim, keepdim, [n](auto* items, const T* slice) noexcept {
      // ATen sorts with a plain "less" although there may be NaNs. The order of short slices is then well defined, that
      // of long ones is not.
      constexpr int64_t kInsertionSort = 16;
      const bool as_floats = n <= kInsertionSort && std::any_of(slice, slice + n, [](T v) { return is_nan(v); });
      if (as_floats)
        std::sort(items, items + n,
                  [slice](const auto& a, const auto& b) { return slice[a.position] < slice[b.position]; });
      else
        std::sort(items, items + n, [](const auto& a, const auto& b) { return a.key < b.key; });
      int64_t best = 0, best_count = 0;
      for (int64_t i = 0, run = 0; i < n; ++i) {
        ++run;
        if (i + 1 < n && items[i].key == items[i + 1].key && !is_nan(slice[items[i].position])) continue;
        if (run > best_count) {
          best_count = run;
          best = items[i].position;
        }
        run = 0;
      }
      return best;
    });
  });
}

}  // namespace sconce::cpu
