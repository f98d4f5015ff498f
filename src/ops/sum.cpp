#include "src/ops/sum.h"

#include <algorithm>
#include <complex>

#include "sconce/check.h"
#include "src/device/threads.h"
#include "src/ops/convert.h"
#include "src/ops/copy.h"
#include "src/ops/dispatch.h"
#include "src/ops/reduced_rows.h"
#include "src/ops/row_sums.h"
#include "src/ops/view.h"

namespace sconce::cpu {
namespace {

template <class T>
using Accumulator =
    std::conditional_t<kIsComplex<T>, ComplexDouble, std::conditional_t<std::is_integral_v<T>, int64_t, double>>;

template <class T>
Accumulator<T> total_of(const T* row, int64_t width) noexcept {
  if constexpr (std::is_floating_point_v<T>) return row_sum(row, width);
  Accumulator<T> total = 0;
  for (int64_t j = 0; j < width; ++j) total += static_cast<Accumulator<T>>(row[j]);
  return total;
}

}  // namespace

Tensor sum(const Tensor& self, std::optional<IntSpan> dim, bool keepdim, std::optional<DType> dtype) {
  const DType type = dtype.value_or(is_integral(self.dtype(), true) ? DType::kInt64 : self.dtype());
  const ReducedRows reduced = reduced_rows("sum", self, dim, keepdim, type);
  const int64_t width = reduced.width;
  Tensor out = Tensor::empty(reduced.sizes, type);
  detail::dispatch_list<DType::kFloat32, DType::kInt64, DType::kInt32, DType::kFloat64, DType::kFloat16,
                        DType::kBFloat16, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kBool, DType::kComplex64,
                        DType::kComplex128>(type, "sum", [&]<class T>() -> void {
    const T* const in = reduced.rows.data_as<T>();
    T* const to = out.data_as<T>();
    parallel_for(0, out.numel(), std::max<int64_t>(1, 32768 / std::max<int64_t>(width, 1)),
                 [&](int64_t begin, int64_t end) noexcept {
                   for (int64_t i = begin; i < end; ++i) to[i] = convert_value<T>(total_of(in + i * width, width));
                 });
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
