// Elements by rank or frequency. Match aten::kthvalue, median, nanmedian and mode (torch 2.15, CUDA).
#include <limits>

#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/cuda/sorting/order_statistics_kernels.h"
#include "src/cuda/sorting/sorted_rows.h"
#include "src/cuda/tensor/filled.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/rows/slices.h"
#include "src/tensor/rules/sorting.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

Tensor middle_of_all(const char* name, const Tensor& self, bool skip_nans) {
  const DeviceScope scope(self.device());
  if (self.numel() == 0) return filled({}, std::numeric_limits<double>::quiet_NaN(), self.dtype(), self.device());
  const int64_t count = self.numel(), one = 1;
  const Tensor row = cuda::contiguous(self).as_strided(IntSpan(&count, 1), IntSpan(&one, 1),
                                                       self.is_contiguous() ? self.storage_offset() : 0);
  const Tensor sorted = sort_stable(row, true, 0, false)[0];
  Tensor out = Tensor::empty({}, self.dtype(), self.device());
  check_launch(
      name,
      launch_middle(static_cast<int>(self.dtype()), sorted.data(), 1, count, skip_nans, out.data(), current_stream()),
      self.dtype());
  return out;
}

}  // namespace

std::array<Tensor, 2> kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  dim = wrap_dim("kthvalue", dim, self.dim());
  check_dim_not_empty("kthvalue", self, dim);
  SCONCE_CHECK(k >= 1 && k <= (self.dim() == 0 ? 1 : self.size(dim)), kInvalidArgument,
               "kthvalue(): selected number k out of range for dimension ", dim);
  check_sortable("kthvalue", self);
  const DeviceScope scope(self.device());
  const Shape shape = without_dim(self, dim, keepdim);
  std::array<Tensor, 2> out{Tensor::empty(shape, self.dtype(), self.device()),
                            Tensor::empty(shape, DType::kInt64, self.device())};
  if (self.dim() == 0) only_element(self, out);
  if (self.dim() == 0 || out[0].numel() == 0) return out;
  const Tensor rows = cuda::contiguous(move_last(self, dim));
  const int64_t length = rows.size(rows.dim() - 1);
  if (length <= kLongRow || length > INT32_MAX)
    sort_rows("kthvalue", rows, nullptr, k - 1, 1, false, out[0], out[1]);
  else
    select_rows("kthvalue", rows, k, false, true, out[0], out[1]);
  return out;
}

Tensor median(const Tensor& self) { return middle_of_all("median", self, false); }
Tensor nanmedian(const Tensor& self) { return middle_of_all("nanmedian", self, true); }

std::array<Tensor, 2> mode(const Tensor& self, int64_t dim, bool keepdim) {
  dim = wrap_dim("mode", dim, self.dim());
  check_dim_not_empty("mode", self, dim);
  const DeviceScope scope(self.device());
  if (self.dim() == 0) return sort_stable(self, true, 0, false);
  const Shape shape = without_dim(self, dim, keepdim);
  std::array<Tensor, 2> out{Tensor::empty(shape, self.dtype(), self.device()),
                            Tensor::empty(shape, DType::kInt64, self.device())};
  if (out[0].numel() == 0) return out;
  const Tensor rows = cuda::contiguous(move_last(self, dim));
  const std::array<Tensor, 2> sorted = sort_stable(rows, true, -1, false);
  check_launch(
      "mode",
      launch_most_frequent(static_cast<int>(self.dtype()), sorted[0].data(), sorted[1].data_as<int64_t>(),
                           out[0].numel(), self.size(dim), out[0].data(), out[1].data_as<int64_t>(), current_stream()),
      self.dtype());
  return out;
}

}  // namespace sconce::cuda
