// The arguments of distances between rows, checked. Match aten::_cdist_forward, torch 2.15.
#pragma once

#include <string_view>

#include "sconce/tensor.h"

namespace sconce {

// Two sets of rows of one length and dtype. kInvalidArgument "NAME: ...".
void check_row_sets(std::string_view name, const Tensor& x1, const Tensor& x2);

}  // namespace sconce
