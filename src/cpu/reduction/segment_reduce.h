// Reductions of consecutive segments. Match aten::segment_reduce and _segment_reduce_backward (torch 2.15, CPU).
//
// data [L..., N, inner...]; segments of dimension `axis` = dimensions of L, by lengths [L..., S] or offsets [L..., S +
// 1] (int32 or int64). Result [L..., S, inner...], row-major. Floating dtypes, combined in sequence in the dtype
// itself, as ATen does. reduce: sum, mean, min, max, prod. Lengths must lie inside of data whatever `unsafe` says: ATen
// would read out of bounds. kInvalidArgument.
#pragma once

#include <optional>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce::cpu {

// initial: where a segment starts, and all of an empty one; without it 0 (NaN for an empty mean), 1 or an infinity.
Tensor segment_reduce(const Tensor& data, std::string_view reduce, const Tensor* lengths, const Tensor* indices,
                      const Tensor* offsets, int64_t axis, bool unsafe, std::optional<double> initial);
// Equal extrema share the gradient.
Tensor _segment_reduce_backward(const Tensor& grad, const Tensor& output, const Tensor& data, std::string_view reduce,
                                const Tensor* lengths, const Tensor* offsets, int64_t axis,
                                std::optional<double> initial);

}  // namespace sconce::cpu
