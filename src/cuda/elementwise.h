// Elementwise operators as they are called by name, with numbers of any kind.
#pragma once

#include "src/ops/scalar.h"

namespace sconce::cuda {

Tensor add(const Tensor& self, const Tensor& other, Scalar alpha);
Tensor subtract(const Tensor& self, const Tensor& other, Scalar alpha);
Tensor multiply(const Tensor& self, const Tensor& other);
Tensor multiply_number(const Tensor& self, Scalar other);

}  // namespace sconce::cuda
