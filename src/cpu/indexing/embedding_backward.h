// Gradients of embedding bags (see embedding.cpp). Match ATen's CPU kernels, torch 2.15. Floating dtypes, any strides;
// half types are summed in float. kInvalidArgument for indices and bags out of range.
#pragma once

#include "sconce/tensor.h"

namespace sconce::cpu {

Tensor _embedding_bag_backward(const Tensor& grad, const Tensor& indices, const Tensor& offsets,
                               const Tensor& offset2bag, const Tensor& bag_size, const Tensor& maximum_indices,
                               int64_t num_weights, bool scale_grad_by_freq, int64_t mode, bool sparse,
                               const Tensor* per_sample_weights, int64_t padding_idx);  // offset2bag may be empty
// grad_output [*indices, columns], of single rows.
Tensor embedding_dense_backward(const Tensor& grad_output, const Tensor& indices, int64_t num_weights,
                                int64_t padding_idx, bool scale_grad_by_freq);

}  // namespace sconce::cpu
