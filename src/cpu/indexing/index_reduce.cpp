// Rows combined into rows by index. Matches aten::index_reduce (torch 2.15, CPU).

#include "sconce/check.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {

// A clone of self in which self[..., index[i], ...] (along dim) is combined with source[..., i, ...]. index [n] of
// int64 or int32, not negative; source of self's sizes but n along dim. reduce: prod, mean, amax, amin. include_self:
// whether self's own value takes part. Dtypes, NaN and halves as in scatter_reduce_two_out. kInvalidArgument.
Tensor index_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                    bool include_self) {
  SCONCE_CHECK(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin", kInvalidArgument,
               "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got ", reduce, ".");
  dim = wrap_dim("index_reduce", dim, self.dim());
  SCONCE_CHECK(index.dtype() == DType::kInt64 || index.dtype() == DType::kInt32, kInvalidArgument,
               "index_reduce(): Expected dtype int32 or int64 for index, got ", dtype_name(index.dtype()));
  SCONCE_CHECK(index.dim() <= 1, kInvalidArgument, "index_reduce(): Index is supposed to be a vector, got ",
               to_string(index.sizes()));
  SCONCE_CHECK(self.dtype() == source.dtype(), kInvalidArgument,
               "index_reduce(): self and source expected to have the same dtype, but got (self) ",
               dtype_name(self.dtype()), " and (source) ", dtype_name(source.dtype()));
  bool fits = self.dim() == source.dim();
  for (int64_t d = 0; fits && d < self.dim(); ++d) fits = source.size(d) == (d == dim ? index.numel() : self.size(d));
  fits &= source.dim() > 0 || index.numel() == 1;
  SCONCE_CHECK(fits, kInvalidArgument,
               "index_reduce(): source tensor shape must match self tensor shape, excluding the specified dimension, ",
               "and number of indices (", index.numel(), ") there. Got self.shape = ", to_string(self.sizes()),
               " source.shape = ", to_string(source.sizes()));
  Tensor out = clone_contiguous(self);
  if (source.numel() == 0) return out;
  // The index, the same for every element of a row.
  Shape sizes(source.sizes()), strides;
  for (int64_t d = 0; d < source.dim(); ++d) strides.push_back(d == dim && index.dim() == 1 ? index.stride(0) : 0);
  const Tensor spread = index.as_strided(sizes, strides, index.storage_offset());
  scatter_reduce_two_out(out, self, dim, spread, source, reduce, include_self);
  return out;
}

}  // namespace sconce::cpu
