#include "src/cpu/reduction/sum.h"

#include <algorithm>

#include "sconce/check.h"
#include "src/cpu/reduction/moments.h"
#include "src/cpu/vector/row_sums.h"
#include "src/device/threads.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/convert.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/rows/reduced_rows.h"
#include "src/tensor/strided_loop.h"
#include "src/tensor/view.h"

namespace sconce::cpu {
namespace {

// If the reduced dimensions are exactly the first ones, their number; else 0.
int leading(const Tensor& self, const std::optional<IntSpan>& dims) {
  if (!dims || dims->empty() || dims->size() >= static_cast<size_t>(self.dim())) return 0;
  uint64_t gone = 0;
  for (const int64_t d : *dims) gone |= uint64_t{1} << wrap_dim("sum", d, self.dim());
  return gone == (uint64_t{1} << dims->size()) - 1 ? static_cast<int>(dims->size()) : 0;
}

// Sums over the first dimensions of a packed tensor without transposing it.
bool sum_columns(const Tensor& self, const std::optional<IntSpan>& dims, bool keepdim, DType type, bool mean,
                 Tensor& out) {
  const int gone = leading(self, dims);
  if (gone == 0 || self.dtype() != type || !self.is_contiguous() || self.numel() == 0) return false;
  if (type != DType::kFloat32 && type != DType::kFloat64) return false;
  int64_t rows = 1, columns = 1;
  Shape sizes;
  for (int d = 0; d < self.dim(); ++d) {
    (d < gone ? rows : columns) *= self.size(d);
    if (d >= gone || keepdim) sizes.push_back(d < gone ? 1 : self.size(d));
  }
  if (columns < 8) return false;
  out = Tensor::empty(sizes, type);
  dispatch_float_double(type, "sum", [&]<class T>() -> void {
    const T* const in = self.data_as<T>();
    T* const to = out.data_as<T>();
    const double by = mean ? static_cast<double>(rows) : 1.0;
    parallel_for(0, (columns + kColumns - 1) / kColumns, std::max<int64_t>(1, 32768 / (rows * kColumns)),
                 [&](int64_t begin, int64_t end) noexcept {
                   for (int64_t at = begin * kColumns; at < std::min(end * kColumns, columns); at += kColumns) {
                     double totals[kColumns];
                     const int64_t n = std::min(kColumns, columns - at);
                     column_totals(in + at, rows, n, columns, totals);
                     for (int64_t j = 0; j < n; ++j) to[at + j] = static_cast<T>(totals[j] / by);
                   }
                 });
  });
  return true;
}

// One row by all threads, each over what it is likely to have in its cache. The pieces do not depend on how many there
// are, so neither does the total.
template <class T>
Total<T> long_row_total(const T* row, int64_t width) {
  constexpr int64_t kPiece = 32768, kMost = 256;
  const int64_t piece = std::max(kPiece, (width + kMost - 1) / kMost), count = (width + piece - 1) / piece;
  Total<T> parts[kMost] = {};
  parallel_for(0, count, 1, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t i = begin; i < end; ++i) parts[i] = row_total(row + i * piece, std::min(piece, width - i * piece));
  });
  Total<T> total = parts[0];
  for (int64_t i = 1; i < count; ++i) total += parts[i];
  return total;
}

// finish(total) of each row.
template <class T, class F>
void total_rows(const T* rows, int64_t count, int64_t width, T* out, const F& finish) {
  if (count == 1) {
    *out = finish(long_row_total(rows, width));
    return;
  }
  parallel_for(0, count, std::max<int64_t>(1, 32768 / std::max<int64_t>(width, 1)),
               [&](int64_t begin, int64_t end) noexcept {
                 for (int64_t i = begin; i < end; ++i) out[i] = finish(row_total(rows + i * width, width));
               });
}

}  // namespace

Tensor sum(const Tensor& self, std::optional<IntSpan> dim, bool keepdim, std::optional<DType> dtype) {
  const DType type = dtype.value_or(is_integral(self.dtype(), true) ? DType::kInt64 : self.dtype());
  Tensor out;
  if (sum_columns(self, dim, keepdim, type, false, out)) return out;
  const ReducedRows reduced = reduced_rows("sum", self, dim, keepdim, type);
  const int64_t width = reduced.width;
  out = Tensor::empty(reduced.sizes, type);
  detail::dispatch_list<DType::kFloat32, DType::kInt64, DType::kInt32, DType::kFloat64, DType::kFloat16,
                        DType::kBFloat16, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kBool, DType::kComplex64,
                        DType::kComplex128>(type, "sum", [&]<class T>() -> void {
    total_rows(reduced.rows.data_as<T>(), out.numel(), width, out.data_as<T>(),
               [](Total<T> total) noexcept { return convert_value<T>(total); });
  });
  return out;
}

Tensor mean(const Tensor& self, std::optional<IntSpan> dim, bool keepdim, std::optional<DType> dtype) {
  const DType type = dtype.value_or(self.dtype());
  check_mean(type);
  Tensor out;
  if (sum_columns(self, dim, keepdim, type, true, out)) return out;
  const ReducedRows reduced = reduced_rows("mean", self, dim, keepdim, type);
  const int64_t width = reduced.width;
  out = Tensor::empty(reduced.sizes, type);
  dispatch_floating_complex(type, "mean", [&]<class T>() -> void {
    total_rows(reduced.rows.data_as<T>(), out.numel(), width, out.data_as<T>(),
               [width](Total<T> total) noexcept { return convert_value<T>(total / static_cast<double>(width)); });
  });
  return out;
}

void sum_out(Tensor& out, const Tensor& self, std::optional<IntSpan> dim, bool keepdim, std::optional<DType> dtype) {
  SCONCE_CHECK(!dtype || *dtype == out.dtype(), kInvalidArgument, "sum: Expected out tensor to have dtype ",
               dtype_name(*dtype), ", but got ", dtype_name(out.dtype()), " instead");
  const Tensor result = sum(self, dim, keepdim, out.dtype());
  resize(out, result.sizes());
  copy(result, out);
}

}  // namespace sconce::cpu
