// Sorting and the largest elements. Match aten::sort, sort.stable and topk (torch 2.15, CPU). NaN counts as greatest,
// -0.0 equals 0.0. Integers, bool, float, double, half, bfloat16; no complex numbers.

#include "sconce/check.h"
#include "src/cpu/sorting/sort_keys.h"
#include "src/cpu/sorting/sort_slice.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/fill.h"
#include "src/tensor/rows/slices.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

// Rows of n packed elements.
template <class T>
void sort_rows(const T* self, T* values, int64_t* positions, int64_t rows, int64_t n, bool descending, bool stable) {
  using Key = SortKey<T>;
  const int64_t parts = slice_parts(rows, n);
  const auto aligned = [](size_t bytes) { return static_cast<int64_t>((bytes + 63) / 64 * 64); };
  const int64_t key_bytes = aligned((static_cast<size_t>(n) + 16) * sizeof(Key));
  const int64_t scratch[2] = {parts, key_bytes + aligned(sort_scratch_bytes(sizeof(Key), n))};
  const Tensor memory = Tensor::empty(scratch, DType::kUInt8);
  parallel_for(0, parts, 1, [&](int64_t first, int64_t last) noexcept {
    for (int64_t part = first; part < last; ++part) {
      auto* own = static_cast<std::byte*>(memory.data()) + part * scratch[1];
      auto* keys = reinterpret_cast<Key*>(own);
      const int64_t end = rows * (part + 1) / parts;
      for (int64_t row = rows * part / parts; row < end; ++row) {
        const T* in = self + row * n;
        T* out = values + row * n;
        int64_t* order = positions + row * n;
        const auto range = make_keys(in, n, descending, keys);
        sort_slice(keys, range, n, stable, order, own + key_bytes);
        for (int64_t i = 0; i < n; ++i) out[i] = in[order[i]];
      }
    }
  });
}

// ATen sorts long vectors of integers with a radix sort, and does not sort slices of one repeated element.
bool always_stable(const Tensor& self, int64_t dim, bool descending) {
  return self.stride(dim) == 0 ||
         (self.dim() == 1 && !descending && self.numel() >= 32768 && is_integral(self.dtype(), false));
}

}  // namespace

std::array<Tensor, 2> sort_stable(const Tensor& self, std::optional<bool> stable, int64_t dim, bool descending) {
  dim = wrap_dim("sort", dim, self.dim());
  SCONCE_CHECK(!is_complex(self.dtype()), kUnsupported, "Sort does not support complex dtypes on CPU, got ",
               dtype_name(self.dtype()));
  std::array<Tensor, 2> out{empty_like(self), empty_like(self, DType::kInt64)};
  if (self.dim() == 0) {
    copy(self, out[0]);
    zero(out[1]);
    return out;
  }
  const int64_t n = self.size(dim);
  SCONCE_CHECK(n <= kMaxSortLength, kUnsupported, "sort: dimension of size ", n, " is too long");
  detail::dispatch_list<DType::kFloat32, DType::kInt64, DType::kInt32, DType::kFloat64, DType::kFloat16,
                        DType::kBFloat16, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kBool, DType::kUInt16,
                        DType::kUInt32, DType::kUInt64>(self.dtype(), "sort", [&]<class T>() {
    if (self.numel() == 0) return;
    const int64_t rows = self.numel() / n;
    const Tensor rows_in = move_last(self, dim);
    std::array<Tensor, 2> rows_out{move_last(out[0], dim), move_last(out[1], dim)};
    const Tensor packed = contiguous(rows_in);
    std::array<Tensor, 2> target = rows_out;
    for (Tensor& t : target)
      if (!t.is_contiguous()) t = Tensor::empty(t.sizes(), t.dtype());
    sort_rows(packed.data_as<T>(), target[0].data_as<T>(), target[1].data_as<int64_t>(), rows, n, descending,
              stable.value_or(false) || always_stable(self, dim, descending));
    for (size_t i = 0; i < 2; ++i)
      if (target[i].data() != rows_out[i].data()) copy(target[i], rows_out[i]);
  });
  return out;
}

// Values and int64 positions along dim, of self's sizes, gapless in the order of self's memory. Where stable is not
// asked for, equal elements come in the order that ATen gives them, which is that of std::sort.
std::array<Tensor, 2> sort(const Tensor& self, int64_t dim, bool descending) {
  return sort_stable(self, false, dim, descending);
}

}  // namespace sconce::cpu
