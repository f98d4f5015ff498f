// The transform that is called by name only.
#pragma once

#include "sconce/tensor.h"

namespace sconce::cuda {

// The last of `dim` gets last_dim_size elements; self holds half of them.
Tensor _fft_c2r(const Tensor& self, IntSpan dim, int64_t normalization, int64_t last_dim_size);

}  // namespace sconce::cuda
