// Indexing with tensors on a device, for the C ABI.
#pragma once

#include <span>

#include "sconce/tensor.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"

namespace sconce::cuda {

// Like cpu::index_put_out.
void index_put_out(Tensor& out, const Tensor& self, std::span<const Tensor* const> indices, const Tensor& values,
                   bool accumulate);

// Call after a launch that reads indices: an index out of bounds fails the run.
inline void check_indices() {
  SCONCE_CUDA(cudaGetLastError());
  check_noted();
}

}  // namespace sconce::cuda
