// Indexing with tensors on a device, for the C ABI.
#pragma once

#include <span>

#include "sconce/tensor.h"

namespace sconce::cuda {

// Like cpu::index_put_out.
void index_put_out(Tensor& out, const Tensor& self, std::span<const Tensor* const> indices, const Tensor& values,
                   bool accumulate);

}  // namespace sconce::cuda
