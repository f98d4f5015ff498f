// The dimensions of a Fourier transform, checked. Match ATen, torch 2.15.
#pragma once

#include <cstdint>
#include <vector>

#include "sconce/tensor.h"

namespace sconce {

// Dimensions that may be negative, each once. kInvalidArgument "NAME: ...".
std::vector<int64_t> fft_dims(const char* name, const Tensor& self, IntSpan dim);

}  // namespace sconce
