// Positions of elements that are not zero.
#pragma once

#include "sconce/tensor.h"
#include "src/cuda/indexing/masked_kernels.h"

namespace sconce::cuda {

// Row-major numbers of the nonzero elements of a packed tensor. Waits for their count.
Tensor numbers_of_nonzero(const Tensor& packed);
inline Mask mask_of(const Tensor& packed) { return {static_cast<const uint8_t*>(packed.data()), packed.numel()}; }

}  // namespace sconce::cuda
