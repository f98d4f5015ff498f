// Checks the arguments of arithmetic. Match ATen, torch 2.15.
#pragma once

#include "src/tensor/scalar.h"

namespace sconce {

// kInvalidArgument if results of the dtype cannot be made with that alpha.
void check_alpha(const char* name, DType dtype, const Scalar& alpha);
// The result dtype of polar() or complex(); kUnsupported, kInvalidArgument.
DType complex_dtype(const char* name, const Tensor& first, const Tensor& second);

}  // namespace sconce
