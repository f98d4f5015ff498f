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

using Function = Tensor(const Tensor& self);
Function reciprocal, exp, log, sqrt, sin, cos, tanh, sigmoid;  // convert integers and bool to float32
Function neg;                                                  // keeps integers; refuses bool
Function conj;                                                 // a copy; for a real tensor, the tensor itself
Function conj_physical;                                        // for a real tensor, the tensor itself
Function _conj_physical;                                       // a copy

}  // namespace sconce::cuda
