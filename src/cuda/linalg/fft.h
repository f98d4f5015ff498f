// What is called by name only.
#pragma once

#include "sconce/tensor.h"

namespace sconce::cuda {

// The last of `dim` has last_dim_size elements afterwards, of which half come from self.
Tensor _fft_c2r(const Tensor& self, IntSpan dim, int64_t normalization, int64_t last_dim_size);

}  // namespace sconce::cuda
