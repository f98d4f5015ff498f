// Functions of real numbers, element by element, in addition to those of functions.h and special.h. Operands broadcast
// and are promoted as by at::TensorIterator; integers give float32 unless said otherwise; complex numbers only if said
// so. Any strides. Match aten's of the same names, torch 2.15.
#pragma once

#include <array>
#include <optional>

#include "src/tensor/scalar.h"

namespace sconce::cpu {

Tensor atan2(const Tensor& self, const Tensor& other);
Tensor copysign(const Tensor& self, const Tensor& other);
Tensor copysign_number(const Tensor& self, Scalar other);
Tensor hypot(const Tensor& self, const Tensor& other);       // floats only
Tensor logaddexp(const Tensor& self, const Tensor& other);   // floats and complex numbers
Tensor logaddexp2(const Tensor& self, const Tensor& other);  // floats only
Tensor xlogy(const Tensor& self, const Tensor& other);
Tensor xlogy_number(const Tensor& self, Scalar other);
Tensor xlogy_of_number(Scalar self, const Tensor& other);
Tensor special_xlog1py(const Tensor& self, const Tensor& other);

// Integers stay. The remainder has the sign of the divisor, fmod that of the dividend. kInvalidArgument
// "ZeroDivisionError" for integers by 0.
Tensor remainder(const Tensor& self, const Tensor& other);
Tensor remainder_number(const Tensor& self, Scalar other);
Tensor remainder_of_number(Scalar self, const Tensor& other);
Tensor fmod(const Tensor& self, const Tensor& other);
Tensor fmod_number(const Tensor& self, Scalar other);
Tensor lcm(const Tensor& self, const Tensor& other);  // integers only

Tensor deg2rad(const Tensor& self);
Tensor rad2deg(const Tensor& self);
Tensor logit(const Tensor& self, std::optional<double> eps);
Tensor sinc(const Tensor& self);  // complex numbers too
Tensor round_decimals(const Tensor& self, int64_t decimals);
std::array<Tensor, 2> frexp(const Tensor& self);  // {mantissa, exponent int32}; floats only
Tensor mvlgamma(const Tensor& self, int64_t p);

}  // namespace sconce::cpu
