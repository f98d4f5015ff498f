// Checks the arguments of distances between rows. Match aten::_cdist_forward, torch 2.15.
#pragma once

#include <string_view>

#include "sconce/tensor.h"

namespace sconce {

// Two sets of rows of equal length and dtype. kInvalidArgument "NAME: ...".
void check_row_sets(std::string_view name, const Tensor& x1, const Tensor& x2);

}  // namespace sconce
