// Integer operators on two tensors. Match aten::bitwise_and.Tensor, bitwise_or, bitwise_left_shift, bitwise_right_shift
// and floor_divide (torch 2.15). Operands broadcast and are promoted.
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
// Rounds down; floats too. Integers: kInvalidArgument "ZeroDivisionError" for a divisor of 0.
Tensor floor_divide(const Tensor& self, const Tensor& other);
// Of integers, towards zero.
Tensor truncate_divide(const Tensor& self, const Tensor& other);
// The slices of self at the positions of `index`, [n] or []: row-major. kInvalidArgument where one is out of range.
Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index);

}  // namespace sconce::cpu
