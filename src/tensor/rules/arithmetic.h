// The arguments of arithmetic, checked. Match ATen, torch 2.15.
#pragma once

#include "src/tensor/scalar.h"

namespace sconce {

// Whether results of the dtype can be made with that alpha: kInvalidArgument.
void check_alpha(const char* name, DType dtype, const Scalar& alpha);
// Of their polar() or complex(); kUnsupported, kInvalidArgument.
DType complex_dtype(const char* name, const Tensor& first, const Tensor& second);

}  // namespace sconce
