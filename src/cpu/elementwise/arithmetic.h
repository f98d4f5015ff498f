// Addition, subtraction and multiplication with numbers of any kind; the operators of elementwise_ops.h take only
// floating numbers. Match aten::add, sub and mul, torch 2.15.
#pragma once

#include "src/tensor/scalar.h"

namespace sconce::cpu {

Tensor add(const Tensor& self, const Tensor& other, Scalar alpha);  // self + alpha * other
Tensor add_number(const Tensor& self, Scalar other, Scalar alpha);
Tensor subtract(const Tensor& self, const Tensor& other, Scalar alpha);
Tensor subtract_number(const Tensor& self, Scalar other, Scalar alpha);
Tensor multiply(const Tensor& self, const Tensor& other);
Tensor multiply_number(const Tensor& self, Scalar other);

}  // namespace sconce::cpu
