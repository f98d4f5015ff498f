// Losses and their gradients. reduction: 0 none, 1 mean, 2 sum. Floating dtypes, any strides. Match aten's of the same
// names (torch 2.15, CPU). kInvalidArgument for wrong targets and sizes.
#pragma once

#include <array>

#include "src/tensor/scalar.h"

namespace sconce::cpu {

// Mean (reduction 1) or sum of log(1 + exp(-target self)).
Tensor soft_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction);

// self [n] or [rows, n]; target int64, one class a row. weight [n] by class.
Tensor multi_margin_loss(const Tensor& self, const Tensor& target, Scalar p, Scalar margin, const Tensor* weight,
                         int64_t reduction);
Tensor multi_margin_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, Scalar p,
                                  Scalar margin, const Tensor* weight, int64_t reduction);
// target int64, of self's sizes: the classes of a row, up to the first that is negative. {loss, is_target}
std::array<Tensor, 2> multilabel_margin_loss_forward(const Tensor& self, const Tensor& target, int64_t reduction);
Tensor multilabel_margin_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                                       int64_t reduction, const Tensor& is_target);

// Of self's class target: self [C], [N, C] or [N, C, ...] of logarithms, target [], [N] or [N, ...]; weight [C].
// {loss, the weights' sum}
std::array<Tensor, 2> nll_loss_forward(const Tensor& self, const Tensor& target, const Tensor* weight,
                                       int64_t reduction, int64_t ignore_index);
Tensor nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, const Tensor* weight,
                         int64_t reduction, int64_t ignore_index, const Tensor& total_weight);

Tensor mse_loss(const Tensor& self, const Tensor& target, int64_t reduction);
Tensor mse_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction);
Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, int64_t reduction, double beta);
Tensor smooth_l1_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction,
                               double beta);
Tensor huber_loss(const Tensor& self, const Tensor& target, int64_t reduction, double delta);
Tensor huber_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction,
                           double delta);
Tensor binary_cross_entropy(const Tensor& self, const Tensor& target, const Tensor* weight, int64_t reduction);
Tensor binary_cross_entropy_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                                     const Tensor* weight, int64_t reduction);
Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target, const Tensor* weight,
                                        const Tensor* pos_weight, int64_t reduction);

}  // namespace sconce::cpu
