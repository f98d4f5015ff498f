// Matches aten::index_reduce (torch 2.15, CUDA).
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {

Tensor index_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                    bool include_self) {
  dim = wrap_dim("index_reduce", dim, self.dim());
  SCONCE_CHECK(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin", kInvalidArgument,
               "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got ", reduce, ".");
  SCONCE_CHECK(
      index.dim() <= 1 && source.dim() == self.dim() && (source.dim() == 0 ? 1 : source.size(dim)) == index.numel(),
      kInvalidArgument, "index_reduce(): index ", describe(index), " and source ", describe(source),
      " do not fit self ", describe(self));
  const DeviceScope scope(self.device());
  Tensor out = Tensor::empty(self.sizes(), self.dtype(), self.device());
  // One index for all elements of a slice.
  Shape strides;
  for (int64_t d = 0; d < source.dim(); ++d) strides.push_back(d == dim && index.dim() == 1 ? index.stride(0) : 0);
  scatter_reduce_two_out(out, self, dim, index.as_strided(source.sizes(), strides, index.storage_offset()), source,
                         reduce, include_self);
  return out;
}

}  // namespace sconce::cuda
