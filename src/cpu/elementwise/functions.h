// Functions of one tensor, element by element, that compiled code leaves to an operator where elements are complex.
// Floats of every width and complex ones; integers and bool are taken as float32 unless said otherwise.
// Strides accepted: any; result strides as at::TensorIterator's. Match aten's of the same names, torch 2.15.
#pragma once

#include "sconce/tensor.h"

namespace sconce::cpu {

Tensor acos(const Tensor& self);
Tensor acosh(const Tensor& self);
Tensor asin(const Tensor& self);
Tensor asinh(const Tensor& self);
Tensor atan(const Tensor& self);
Tensor atanh(const Tensor& self);
Tensor cos(const Tensor& self);
Tensor cosh(const Tensor& self);
Tensor exp(const Tensor& self);
Tensor exp2(const Tensor& self);
Tensor expm1(const Tensor& self);
Tensor log(const Tensor& self);
Tensor log10(const Tensor& self);
Tensor log1p(const Tensor& self);
Tensor log2(const Tensor& self);
Tensor reciprocal(const Tensor& self);
Tensor rsqrt(const Tensor& self);
Tensor sigmoid(const Tensor& self);
Tensor sin(const Tensor& self);
Tensor sinh(const Tensor& self);
Tensor sqrt(const Tensor& self);
Tensor tan(const Tensor& self);
Tensor tanh(const Tensor& self);
Tensor silu(const Tensor& self);  // no integers

// No complex numbers.
Tensor erf(const Tensor& self);
Tensor erfc(const Tensor& self);
Tensor lgamma(const Tensor& self);
Tensor ceil(const Tensor& self);  // this and the next four: integers stay; no bool
Tensor floor(const Tensor& self);
Tensor frac(const Tensor& self);   // floats only
Tensor round(const Tensor& self);  // halves to even
Tensor trunc(const Tensor& self);

Tensor neg(const Tensor& self);  // integers stay; no bool
Tensor sgn(const Tensor& self);  // integers and bool stay; of complex: z / |z|
// Results bool.
Tensor isnan(const Tensor& self);
Tensor isinf(const Tensor& self);
Tensor logical_not(const Tensor& self);

}  // namespace sconce::cpu
