// Selection by mask. Matches aten::masked_select, masked_scatter and masked_fill (torch 2.15, CPU).
#pragma once

#include "sconce/tensor.h"

namespace sconce {

// self[mask] = one element's bytes. mask: bool or uint8 of self's sizes, of any strides.
void fill_where(Tensor& self, const Tensor& mask, const void* element);

}  // namespace sconce
