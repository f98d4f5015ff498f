// Checks the arguments of selection by mask. Match ATen, torch 2.15.
#pragma once

#include "sconce/tensor.h"

namespace sconce {

// The dtypes of masked_scatter. kInvalidArgument.
void check_masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source);

}  // namespace sconce
