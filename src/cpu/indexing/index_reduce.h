// Rows combined into rows by index. Matches aten::index_reduce (torch 2.15, CPU).
#pragma once

#include <string_view>

#include "sconce/tensor.h"

namespace sconce::cpu {

// A clone of self in which self[..., index[i], ...] (along dim) is combined with source[..., i, ...]. index [n] of
// int64 or int32, not negative; source of self's sizes but n along dim. reduce: prod, mean, amax, amin. include_self:
// whether self's own value takes part. Dtypes, NaN and halves as in scatter_reduce_two_out. kInvalidArgument.
Tensor index_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                    bool include_self);

}  // namespace sconce::cpu
