// Functions of one tensor, element by element, that compiled code leaves to an operator if elements are complex.
// Floats of every width and complex ones; integers and bool are converted to float32 unless said otherwise. Any
// strides; result strides as at::TensorIterator's. Match aten's of the same names, torch 2.15.
#pragma once

#include "sconce/tensor.h"

namespace sconce::cpu {

using Function = Tensor(const Tensor& self);

Function acos, acosh, asin, asinh, atan, atanh, cos, cosh, exp, exp2, expm1, log, log10, log1p, log2, reciprocal, rsqrt,
    sigmoid, sin, sinh, sqrt, tan, tanh;
Function silu;  // no integers

// No complex numbers.
Function erf, erfc, lgamma;
Function ceil, floor, round, trunc;  // integers stay, no bool; round: halves to even
Function frac;                       // floats only

Function neg;  // integers stay; no bool
Function sgn;  // integers and bool stay; of complex: z / |z|
// Results bool.
Function isnan, isinf, logical_not;

}  // namespace sconce::cpu
