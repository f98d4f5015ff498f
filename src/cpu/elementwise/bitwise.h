// Integer operators on two tensors. Match aten::bitwise_and.Tensor, bitwise_or, bitwise_left_shift, bitwise_right_shift
// (torch 2.15). Operands broadcast and are promoted.
#pragma once

#include "sconce/tensor.h"

namespace sconce::cpu {

Tensor bitwise_and(const Tensor& self, const Tensor& other);  // bool too
Tensor bitwise_or(const Tensor& self, const Tensor& other);
Tensor bitwise_xor(const Tensor& self, const Tensor& other);
Tensor bitwise_not(const Tensor& self);
// Shifts by negative or too many bits give 0, to the right -1 for negative numbers.
Tensor bitwise_left_shift(const Tensor& self, const Tensor& other);
Tensor bitwise_right_shift(const Tensor& self, const Tensor& other);

}  // namespace sconce::cpu
