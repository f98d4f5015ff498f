// Sums of products of three tensors. Matches aten::_trilinear (torch 2.15, CPU), which is torch.nn.Bilinear.
#pragma once

#include "sconce/tensor.h"

namespace sconce::cpu {

// _trilinear with another product of batches of matrices, on whatever device.
using BatchProduct = Tensor(const Tensor& self, const Tensor& mat2);
Tensor trilinear_by(BatchProduct* product, const Tensor& i1, const Tensor& i2, const Tensor& i3, IntSpan expand1,
                    IntSpan expand2, IntSpan expand3, IntSpan sumdim);

}  // namespace sconce::cpu
