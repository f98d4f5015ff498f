// Softmax along a dimension, with and without a mask, and the gradients. Floating dtypes, any strides; halves are
// computed in float; results row-major. Match aten's of the same names (torch 2.15, CPU).
#pragma once

#include <optional>

#include "sconce/tensor.h"

namespace sconce::cpu {

Tensor _softmax(const Tensor& self, int64_t dim, bool half_to_float);
Tensor _log_softmax(const Tensor& self, int64_t dim, bool half_to_float);
Tensor _softmax_backward_data(const Tensor& grad_output, const Tensor& output, int64_t dim, DType input_dtype);
Tensor _log_softmax_backward_data(const Tensor& grad_output, const Tensor& output, int64_t dim, DType input_dtype);
Tensor _safe_softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype);  // rows of -infinity give 0

// mask: bool, true elements get no weight. mask_type 0: [L, L]; 1: [B, L]; 2: self's sizes. self [B, H, T, L].
Tensor _masked_softmax(const Tensor& self, const Tensor& mask, std::optional<int64_t> dim,
                       std::optional<int64_t> mask_type);
Tensor _masked_softmax_backward(const Tensor& grad_output, const Tensor& output, const Tensor& mask,
                                std::optional<int64_t> dim);

}  // namespace sconce::cpu
