// Match aten::sum and mean (torch 2.15). Floats and complex numbers are summed in float64, so results may be more exact
// than ATen's. Results are row-major.
#include "src/cuda/reduction/sum.h"

#include "src/cuda/reduction/sum_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/tensor/rows/reduced_rows.h"

namespace sconce::cuda {
namespace {

Tensor reduced(const char* name, const Tensor& self, std::optional<IntSpan> dim, bool keepdim, DType type,
               bool average) {
  const DeviceScope scope(self.device());
  // A bool result is summed in int64 (true if any is), a complex32 one in complex64.
  const DType summed = type == DType::kBool ? DType::kInt64 : type == DType::kComplex32 ? DType::kComplex64 : type;
  const ReducedRows given = reduced_rows(name, self, dim, keepdim, summed);
  Tensor out = Tensor::empty(given.sizes, summed, self.device());
  check_launch(name,
               launch_row_sums(given.rows.data(), static_cast<int>(summed), out.numel(), given.width,
                               average ? static_cast<double>(given.width) : 1.0, out.data(), current_stream()),
               type);
  return converted(out, type);
}

}  // namespace

Tensor sum(const Tensor& self, std::optional<IntSpan> dim, bool keepdim, std::optional<DType> dtype) {
  const bool whole = !is_floating(self.dtype()) && !is_complex(self.dtype());
  return reduced("sum", self, dim, keepdim, dtype.value_or(whole ? DType::kInt64 : self.dtype()), false);
}
Tensor sum_all(const Tensor& self, std::optional<DType> dtype) { return sum(self, std::nullopt, false, dtype); }

Tensor mean(const Tensor& self, std::optional<IntSpan> dim, bool keepdim, std::optional<DType> dtype) {
  const DType type = dtype.value_or(self.dtype());
  check_mean(type);
  return reduced("mean", self, dim, keepdim, type, true);
}
Tensor mean_all(const Tensor& self, std::optional<DType> dtype) { return mean(self, std::nullopt, false, dtype); }

}  // namespace sconce::cuda
