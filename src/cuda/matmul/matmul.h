// Matrix products that are called by name.
#pragma once

#include "sconce/tensor.h"

namespace sconce::cuda {

Tensor mm(const Tensor& self, const Tensor& mat2);
Tensor _int_mm(const Tensor& self, const Tensor& mat2);
Tensor bmm(const Tensor& self, const Tensor& mat2);

}  // namespace sconce::cuda
