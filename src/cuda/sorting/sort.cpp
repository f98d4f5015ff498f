// Sorting. Match aten::sort.stable and sort (torch 2.11, CUDA).
#include "src/cuda/runtime/stream.h"
#include "src/cuda/sorting/sorted_rows.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/rows/slices.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {

std::array<Tensor, 2> sort_stable(const Tensor& self, std::optional<bool>, int64_t dim, bool descending) {
  check_sortable("sort", self);
  dim = wrap_dim("sort", dim, self.dim());
  const DeviceScope scope(self.device());
  const Shape strides = dense_strides(self.sizes(), self.strides());
  std::array<Tensor, 2> out{Tensor::empty_strided(self.sizes(), strides, self.dtype(), self.device()),
                            Tensor::empty_strided(self.sizes(), strides, DType::kInt64, self.device())};
  if (self.numel() == 0) return out;
  if (self.dim() == 0) {
    only_element(self, out);
    return out;
  }
  const Tensor rows = contiguous(move_last(self, dim));
  by_rows(out, dim, [&](Tensor& values, Tensor& indices) {
    sort_rows("sort", rows, nullptr, 0, self.size(dim), descending, values, indices);
  });
  return out;
}

std::array<Tensor, 2> sort(const Tensor& self, int64_t dim, bool descending) {
  return sort_stable(self, true, dim, descending);
}

}  // namespace sconce::cuda
