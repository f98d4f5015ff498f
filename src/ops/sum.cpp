#include "src/ops/sum.h"

#include <complex>
#include <vector>

#include "sconce/check.h"
#include "src/device/threads.h"
#include "src/ops/convert.h"
#include "src/ops/copy.h"
#include "src/ops/dispatch.h"
#include "src/ops/strided_loop.h"
#include "src/ops/view.h"

namespace sconce::cpu {
namespace {

template <class T>
using Accumulator =
    std::conditional_t<kIsComplex<T>, ComplexDouble, std::conditional_t<std::is_integral_v<T>, int64_t, double>>;

}  // namespace

Tensor sum(const Tensor& self, std::optional<IntSpan> dim, bool keepdim, std::optional<DType> dtype) {
  std::vector<bool> reduced(static_cast<size_t>(self.dim()), !dim || dim->empty());
  for (const int64_t d : dim.value_or(IntSpan())) {
    const auto at = static_cast<size_t>(wrap_dim("sum", d, self.dim()));
    if (self.dim() == 0) continue;
    SCONCE_CHECK(!reduced[at], kInvalidArgument, "sum: dim ", d, " appears multiple times in the list of dims");
    reduced[at] = true;
  }
  std::vector<int64_t> order, sizes;
  int64_t width = 1;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (!reduced[static_cast<size_t>(d)]) order.push_back(d);
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (reduced[static_cast<size_t>(d)]) {
      order.push_back(d);
      width *= self.size(d);
    }
    if (!reduced[static_cast<size_t>(d)] || keepdim)
      sizes.push_back(reduced[static_cast<size_t>(d)] ? 1 : self.size(d));
  }
  const DType type = dtype.value_or(is_integral(self.dtype(), true) ? DType::kInt64 : self.dtype());
  Tensor out = Tensor::empty(sizes, type);
  const Tensor rows = contiguous(permute(to_dtype(self, type), order));
  detail::dispatch_list<DType::kFloat32, DType::kInt64, DType::kInt32, DType::kFloat64, DType::kFloat16,
                        DType::kBFloat16, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kBool, DType::kComplex64,
                        DType::kComplex128>(type, "sum", [&]<class T>() -> void {
    const T* const in = rows.data_as<T>();
    T* const to = out.data_as<T>();
    parallel_for(0, out.numel(), std::max<int64_t>(1, 32768 / std::max<int64_t>(width, 1)),
                 [&](int64_t begin, int64_t end) noexcept {
                   for (int64_t i = begin; i < end; ++i) {
                     Accumulator<T> total = 0;
                     for (int64_t j = 0; j < width; ++j) total += static_cast<Accumulator<T>>(in[i * width + j]);
                     to[i] = convert_value<T>(total);
                   }
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
