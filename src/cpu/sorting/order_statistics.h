// Elements by rank or frequency. Match aten::kthvalue, median, nanmedian and mode (torch 2.15, CPU). NaN counts as the
// largest. Any strides; results are row-major. No complex numbers; kthvalue and the medians without bool.
// kInvalidArgument for k or dim out of range and for a dimension without elements, kUnsupported for dtypes.
#pragma once

#include <array>

#include "sconce/tensor.h"

namespace sconce::cpu {

// The median along dim and its position; of equal elements, earlier ones count as smaller.
std::array<Tensor, 2> median_dim(const Tensor& self, int64_t dim, bool keepdim);
std::array<Tensor, 2> nanmedian_dim(const Tensor& self, int64_t dim, bool keepdim);

}  // namespace sconce::cpu
