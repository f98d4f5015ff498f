// Distances between rows. Match aten::_cdist_forward, _cdist_backward, _pdist_forward, _pdist_backward (torch 2.15,
// CPU).
//
// Float and double, any strides, row-major results. p >= 0: 0 counts differing elements, infinity takes the largest
// difference. kInvalidArgument for ranks, columns or batches that do not fit; kUnsupported for dtypes.
#pragma once

#include <optional>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce::cpu {

// [B..., P, M], [B..., R, M] -> [B..., P, R]; batches broadcast. compute_mode: 0 (and none) takes the way over a matrix
// product for p = 2 where P or R is above 25, 1 always, 2 never.
Tensor _cdist_forward(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> compute_mode);
// Gradient by x1, of the batches' common shape.
Tensor _cdist_backward(const Tensor& grad_output, const Tensor& x1, const Tensor& x2, double p, const Tensor& cdist);
// [N, M] -> [N (N - 1) / 2]: rows 0-1, 0-2, ..., 1-2, ...
Tensor _pdist_forward(const Tensor& self, double p);
Tensor _pdist_backward(const Tensor& grad_output, const Tensor& self, double p, const Tensor& pdist);

}  // namespace sconce::cpu
