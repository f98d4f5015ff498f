// Quotients without their fractions. Match aten::floor_divide and div with a rounding mode (torch 2.15). Operands
// broadcast and are promoted.
#pragma once

#include "sconce/tensor.h"

namespace sconce::cpu {

// Rounds down; floats too. Integers: kInvalidArgument "ZeroDivisionError" for a divisor of 0.
Tensor floor_divide(const Tensor& self, const Tensor& other);
// Divides integers and rounds towards zero.
Tensor truncate_divide(const Tensor& self, const Tensor& other);

}  // namespace sconce::cpu
