// Checks the arguments of reductions of segments, except the values of lengths and offsets. Match
// aten::segment_reduce, torch 2.15. kInvalidArgument.
#pragma once

#include <cstdint>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce {

// For the forward direction, before its shape.
void check_segment_reduce(const Tensor& data, const Tensor* lengths, const Tensor* indices, bool unsafe);

enum class SegmentReduction { kMax, kMean, kMin, kSum, kProd };
SegmentReduction segment_reduction(std::string_view name);

// data is [outer, size, inner] in `count` segments of each outer row.
struct SegmentShape {
  int64_t outer = 1, count = 0, size = 0, inner = 1;
};
SegmentShape segment_shape(const Tensor& data, const Tensor* lengths, const Tensor* offsets, int64_t axis);

}  // namespace sconce
