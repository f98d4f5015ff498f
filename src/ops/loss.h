// Gradients of losses that have an operator of their own. Match ATen's CPU kernels, torch 2.15.
#pragma once

#include "sconce/tensor.h"

namespace sconce::cpu {

// Of mean (reduction 1) or sum of log(1 + exp(-target self)), times grad_output; floating, operands broadcast.
Tensor soft_margin_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                                 int64_t reduction);

}  // namespace sconce::cpu
