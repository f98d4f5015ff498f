// Fills. Matches at::fill_ (torch 2.15): the value must fit the dtype, else kInvalidArgument "value cannot be
// converted to type T without overflow"; bool accepts anything.
#pragma once

#include <complex>
#include <cstdint>

#include "sconce/tensor.h"

namespace sconce {

void fill(Tensor& self, double value);
void fill(Tensor& self, int64_t value);
void fill(Tensor& self, std::complex<double> value);
void zero(Tensor& self);

// One element's bytes of a value, with the checks of fill. out has room for 16 bytes.
void scalar_bytes(double value, DType dtype, void* out);
void scalar_bytes(int64_t value, DType dtype, void* out);
void scalar_bytes(std::complex<double> value, DType dtype, void* out);
// Fills with the bytes of one element.
void fill_bytes(Tensor& self, const void* element);

}  // namespace sconce
