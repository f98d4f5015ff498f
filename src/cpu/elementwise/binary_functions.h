// Operators of two or three tensors that compiled code leaves to an operator if elements are complex: quotients,
// comparisons, choices, interpolation. Operands broadcast and are promoted as by at::TensorIterator; numbers keep
// their original kind. Any dtypes except float8, any strides. Match aten's of the same names, torch 2.15.
#pragma once

#include "src/tensor/scalar.h"

namespace sconce::cpu {

// True division: integers give float32.
Tensor divide(const Tensor& self, const Tensor& other);
Tensor divide_number(const Tensor& self, Scalar other);
Tensor complex(const Tensor& real, const Tensor& imag);  // float16, float32 or float64, both of one dtype

// Results bool.
Tensor eq(const Tensor& self, const Tensor& other);
Tensor eq_number(const Tensor& self, Scalar other);
Tensor ne(const Tensor& self, const Tensor& other);
Tensor ne_number(const Tensor& self, Scalar other);
Tensor logical_and(const Tensor& self, const Tensor& other);
Tensor logical_or(const Tensor& self, const Tensor& other);
Tensor logical_xor(const Tensor& self, const Tensor& other);

Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other);  // condition: bool or uint8
// self where the mask (bool) is false.
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value);  // value: 0-d
Tensor masked_fill_number(const Tensor& self, const Tensor& mask, Scalar value);

// self + weight * (end - self). Floats and complex, of one dtype.
Tensor lerp(const Tensor& self, const Tensor& end, const Tensor& weight);
Tensor lerp_number(const Tensor& self, const Tensor& end, Scalar weight);
Tensor addcmul(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, Scalar value);  // self + value * 1 * 2
Tensor addcdiv(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, Scalar value);  // self + value * 1 / 2
Tensor ldexp(const Tensor& self, const Tensor& other);                                           // self * 2^other
Tensor nextafter(const Tensor& self, const Tensor& other);                                       // floats

// The gradient of hardshrink and softshrink: grad_output if self is outside of [-lambd, lambd], else 0.
Tensor shrink_backward(const Tensor& grad_output, const Tensor& self, Scalar lambd);

// Powers with numbers of any kind; integers to whole powers stay integers.
Tensor power_number(const Tensor& self, Scalar exponent);
Tensor number_power(Scalar self, const Tensor& exponent);

}  // namespace sconce::cpu
