// Sums of products of three tensors, by a product of batches of matrices on any device. Match aten::_trilinear, torch
// 2.15.
#pragma once

#include "sconce/tensor.h"

namespace sconce {

// Every operand gets a dimension of size 1 at its `expand` positions (of the result's dimensions, ascending); the
// broadcast product is summed over sumdim. Any strides, numeric dtypes, halves summed in float; row-major.
// kInvalidArgument if dimensions do not match.
using BatchProduct = Tensor(const Tensor& self, const Tensor& mat2);
Tensor trilinear_by(BatchProduct* product, const Tensor& i1, const Tensor& i2, const Tensor& i3, IntSpan expand1,
                    IntSpan expand2, IntSpan expand3, IntSpan sumdim);

}  // namespace sconce
