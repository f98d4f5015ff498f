// Selection by mask. Matches aten::masked_select, masked_scatter and masked_fill (torch 2.15, CPU).
#pragma once

#include "sconce/tensor.h"

namespace sconce {

// self[mask] = one element's bytes. mask: bool or uint8 of self's sizes, of any strides.
void fill_where(Tensor& self, const Tensor& mask, const void* element);

namespace cpu {

// The elements of self (broadcast with mask) where the mask is true, in row-major order: [n]. Mask: bool.
Tensor masked_select(const Tensor& self, const Tensor& mask);
// self (broadcast with mask), row-major, where true elements are replaced by the next ones of source in row-major
// order. kInvalidArgument where source has too few.
Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source);
// Gradient of masked_scatter by its source, of `sizes`: masked_select(grad_output, mask), then zeros.
Tensor masked_scatter_backward(const Tensor& grad_output, const Tensor& mask, IntSpan sizes);

}  // namespace cpu

}  // namespace sconce
