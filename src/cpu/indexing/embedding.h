// Sums, means and maxima over bags of embedding rows.
#pragma once

#include <array>

#include "sconce/tensor.h"

namespace sconce::cpu {

// weight [rows, columns], floating, any strides; indices [n] and offsets [bags], or [bags + 1] with
// include_last_offset, of integers that promote to int32 or int64. mode 0 sums, 1 averages, 2 takes maxima.
// per_sample_weights [n] of the weight's dtype, for sums. Rows at padding_idx (if not negative) are left out.
//
// Results: output [bags, columns]; offset2bag [n], or [0] where a sum needs none (no padding, a dtype narrower than
// double, rows that lie together); bag_size [bags], zeros for sums; max_indices [bags, columns] for maxima, else equal
// to bag_size. The last three have the dtype of the indices. scale_grad_by_freq and sparse concern gradients only.
// kInvalidArgument for indices outside the rows and for offsets that do not rise from 0 to at most n.
// Matches ATen's CPU kernels, torch 2.15.
std::array<Tensor, 4> _embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                                     bool scale_grad_by_freq, int64_t mode, bool sparse,
                                     const Tensor* per_sample_weights, bool include_last_offset, int64_t padding_idx);
// The same, but bag_size of a sum has the size of offsets.
std::array<Tensor, 4> _embedding_bag_forward_only(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                                                  bool scale_grad_by_freq, int64_t mode, bool sparse,
                                                  const Tensor* per_sample_weights, bool include_last_offset,
                                                  int64_t padding_idx);

}  // namespace sconce::cpu
