// Elementwise operators that are called by name, which take numbers of any kind.
#pragma once

#include "src/tensor/scalar.h"

namespace sconce::cuda {

Tensor add(const Tensor& self, const Tensor& other, Scalar alpha);
Tensor subtract(const Tensor& self, const Tensor& other, Scalar alpha);
Tensor multiply(const Tensor& self, const Tensor& other);
Tensor multiply_number(const Tensor& self, Scalar other);
Tensor add_number(const Tensor& self, Scalar other, Scalar alpha);
Tensor subtract_number(const Tensor& self, Scalar other, Scalar alpha);
Tensor divide(const Tensor& self, const Tensor& other);
Tensor divide_number(const Tensor& self, Scalar other);
Tensor power_of_number(const Tensor& self, Scalar exponent);
Tensor number_power(Scalar self, const Tensor& exponent);
Tensor complex(const Tensor& real, const Tensor& imag);

// Convert integers and bool to float32.
Tensor reciprocal(const Tensor& self);
Tensor exp(const Tensor& self);
Tensor log(const Tensor& self);
Tensor sqrt(const Tensor& self);
Tensor sin(const Tensor& self);
Tensor cos(const Tensor& self);
Tensor tanh(const Tensor& self);
Tensor sigmoid(const Tensor& self);
Tensor neg(const Tensor& self);             // keeps integers; refuses bool
Tensor conj(const Tensor& self);            // a copy; a real tensor itself
Tensor conj_physical(const Tensor& self);   // a real tensor itself
Tensor _conj_physical(const Tensor& self);  // a copy

}  // namespace sconce::cuda
