// Elements by rank or frequency. Match aten::kthvalue, median, nanmedian and mode (torch 2.15, CPU). NaN counts as
// greatest. Any strides; results are row-major. No complex numbers; kthvalue and the medians without bool.
// kInvalidArgument for k or dim out of range and for a dimension of no elements, kUnsupported for dtypes.
#pragma once

#include <array>
#include <string_view>

#include "src/tensor/strided_loop.h"

namespace sconce::cpu {

// The k-th smallest (from 1) along dim and its int64 position. Of equal elements the one that ATen's selection ends on.
std::array<Tensor, 2> kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim);
// Of all elements, the lower one of two; a 0-d tensor. NaN if there is a NaN, or if there are no elements.
Tensor median(const Tensor& self);
// Of all elements that are not NaN; NaN if there are none.
Tensor nanmedian(const Tensor& self);
// Along dim, and the position; of equal elements those that come first count as smaller.
std::array<Tensor, 2> median_dim(const Tensor& self, int64_t dim, bool keepdim);
std::array<Tensor, 2> nanmedian_dim(const Tensor& self, int64_t dim, bool keepdim);
// The most frequent element along dim, the smallest of several, and the position ATen's sort leaves last among equals.
// NaNs are different from each other and, in slices of more than 16, greatest; in shorter ones they part the slice, as
// in ATen.
std::array<Tensor, 2> mode(const Tensor& self, int64_t dim, bool keepdim);

}  // namespace sconce::cpu
