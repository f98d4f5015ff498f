// Slices selected by position. Matches aten::index_select (torch 2.15).
#pragma once

#include "sconce/tensor.h"

namespace sconce::cpu {

// The slices of self at the positions of `index`, [n] or []: row-major. kInvalidArgument if one is out of range.
Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index);

}  // namespace sconce::cpu
