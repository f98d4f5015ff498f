// Positions of elements that are not zero.
#pragma once

#include "sconce/tensor.h"
#include "src/cuda/indexing/masked_kernels.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/scratch.h"

namespace sconce::cuda {

// Row-major numbers of the nonzero elements of a packed tensor. Waits for their count.
Tensor numbers_of_nonzero(const Tensor& packed);
inline Mask mask_of(const Tensor& packed) { return {static_cast<const uint8_t*>(packed.data()), packed.numel()}; }

// Calls `call` once to learn its scratch size, then with the scratch.
template <class F>
void with_scratch(Device device, F&& call) {
  size_t bytes = 0;
  SCONCE_CUDA(call(nullptr, bytes));
  const Tensor memory = scratch(bytes, device);
  SCONCE_CUDA(call(memory.data(), bytes));
}

}  // namespace sconce::cuda
