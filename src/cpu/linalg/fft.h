// Discrete Fourier transforms over some dimensions. Match aten::_fft_c2c, _fft_r2c and _fft_c2r, result strides
// included (torch 2.15, CPU with MKL). float32, float64 and their complex dtypes; any strides.
//
// normalization: 0 none, 1 divided by the root of the number of elements transformed, 2 by that number.
#pragma once

#include "sconce/tensor.h"

namespace sconce::cpu {

// The last dimension of `dim` gets last_dim_size elements, half of which come from self. Imaginary parts that a real
// signal cannot have are ignored.
Tensor _fft_c2r(const Tensor& self, IntSpan dim, int64_t normalization, int64_t last_dim_size);

}  // namespace sconce::cpu
