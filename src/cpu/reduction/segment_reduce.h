// Reductions of consecutive segments. Match aten::segment_reduce and _segment_reduce_backward (torch 2.15, CPU).
//
// data [L..., N, inner...]; segments of dimension `axis` = dimensions of L, by lengths [L..., S] or offsets [L..., S +
// 1] (int32 or int64). Result [L..., S, inner...], row-major. Floating dtypes, combined in sequence in the dtype
// itself, as ATen does. reduce: sum, mean, min, max, prod. Lengths must lie inside of data whatever `unsafe` says: ATen
// would read out of bounds. kInvalidArgument.
#pragma once

#include <string_view>

#include "sconce/tensor.h"

namespace sconce::cpu {

// Of the forward direction, before its shape.
void check_segment_reduce(const Tensor& data, const Tensor* lengths, const Tensor* indices, bool unsafe);

// What kernels need, checked but for the values of lengths and offsets: data is [outer, size, inner] in `count`
// segments of each outer row.
enum class SegmentReduction { kMax, kMean, kMin, kSum, kProd };
SegmentReduction segment_reduction(std::string_view name);
struct SegmentShape {
  int64_t outer = 1, count = 0, size = 0, inner = 1;
};
SegmentShape segment_shape(const Tensor& data, const Tensor* lengths, const Tensor* offsets, int64_t axis);

}  // namespace sconce::cpu
