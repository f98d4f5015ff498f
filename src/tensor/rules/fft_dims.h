// Checks the dimensions of a Fourier transform. Match ATen, torch 2.15.
#pragma once

#include <cstdint>
#include <vector>

#include "sconce/tensor.h"

namespace sconce {

// Dimensions, which may be negative and must be distinct. kInvalidArgument "NAME: ...".
std::vector<int64_t> fft_dims(const char* name, const Tensor& self, IntSpan dim);

}  // namespace sconce
