// Selection by mask. Matches aten::masked_select and masked_scatter (torch 2.15, CPU).
#pragma once

#include "sconce/tensor.h"

namespace sconce::cpu {

// The elements of self (broadcast with mask) where the mask is true, in row-major order: [n]. Mask: bool.
Tensor masked_select(const Tensor& self, const Tensor& mask);
// self (broadcast with mask), row-major, where true elements are replaced by the next ones of source in row-major
// order. kInvalidArgument where source has too few.
Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source);

}  // namespace sconce::cpu
