// Scatter along a dimension. Matches aten::scatter.src_out, scatter.value_out and scatter_reduce.two_out (torch 2.15,
// CPU): out = self; then for every position of `index`, the element of out whose coordinate along `dim` is the index is
// written, or combined, with src's element at that position. Of duplicates the last along `dim` wins.
//
// index: int64 or int32, of self's rank, no larger than src, nor than self but along dim. out may be self and must not
// overlap index or src. kInvalidArgument for an index out of [0, size); negative ones are not wrapped.
#pragma once

#include <string_view>

#include "sconce/tensor.h"

namespace sconce::cpu {

void scatter_src_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
void scatter_value_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, double value);
// reduce: sum, prod, mean, amax, amin. include_self: whether self's own value takes part where something is scattered.
// half and bfloat16 are accumulated in float.
void scatter_reduce_two_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                            std::string_view reduce, bool include_self);

}  // namespace sconce::cpu
