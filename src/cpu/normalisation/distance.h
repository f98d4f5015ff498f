// Distances between rows. Match aten::_cdist_forward, _cdist_backward, _pdist_forward, _pdist_backward (torch 2.15,
// CPU).
//
// Float and double, any strides, row-major results. p >= 0: 0 counts differing elements, infinity takes the largest
// difference. kInvalidArgument for ranks, columns or batches that do not fit; kUnsupported for dtypes.
#pragma once

#include <string_view>

#include "sconce/tensor.h"

namespace sconce::cpu {

// Two sets of rows of one length and dtype.
void check_row_sets(std::string_view name, const Tensor& x1, const Tensor& x2);

}  // namespace sconce::cpu
