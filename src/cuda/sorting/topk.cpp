// The first of each sorted row. Matches aten::topk (torch 2.11, CUDA).
#include "src/cuda/runtime/stream.h"
#include "src/cuda/sorting/sorted_rows.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {

// Selects what a stable sort puts first, so the first of equal elements. If not `sorted`, long rows keep their order.
std::array<Tensor, 2> topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted) {
  dim = wrap_dim("topk", dim, self.dim());
  const int64_t length = self.dim() == 0 ? 1 : self.size(dim);
  SCONCE_CHECK(k >= 0 && k <= length, kInvalidArgument, "topk: selected index k out of range: ", k, " of ",
               to_string(self.sizes()));
  check_sortable("topk", self);
  const DeviceScope scope(self.device());
  Shape sizes(self.sizes());
  if (self.dim() > 0) sizes[static_cast<int>(dim)] = k;
  std::array<Tensor, 2> out{Tensor::empty(sizes, self.dtype(), self.device()),
                            Tensor::empty(sizes, DType::kInt64, self.device())};
  if (self.dim() == 0 && k == 1) only_element(self, out);
  if (self.dim() == 0 || out[0].numel() == 0) return out;
  const Tensor rows = contiguous(move_last(self, dim));
  by_rows(out, dim, [&](Tensor& values, Tensor& indices) {
    if (length <= kLongRow || k == length || length > INT32_MAX) {
      sort_rows("topk", rows, nullptr, 0, k, largest, values, indices);
    } else if (k == 1 || !sorted) {
      select_rows("topk", rows, k, largest, false, values, indices);
    } else {
      Tensor first = Tensor::empty(values.sizes(), values.dtype(), values.device()),
             places = Tensor::empty(values.sizes(), DType::kInt64, values.device());
      select_rows("topk", rows, k, largest, false, first, places);
      sort_rows("topk", first, &places, 0, k, largest, values, indices);
    }
  });
  return out;
}

}  // namespace sconce::cuda
