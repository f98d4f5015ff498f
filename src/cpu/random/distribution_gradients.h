// Gradients of samples by the parameters of their distributions: minus the derivative of the distribution function by
// the parameter, divided by the density, exactly. ATen's CPU kernels, which these match, approximate it to about 0.1
// %. Floats, of one dtype; operands broadcast. Match aten::_standard_gamma_grad and _dirichlet_grad, torch 2.15.
#pragma once

#include "sconce/tensor.h"

namespace sconce::cpu {

// output: samples of the gamma distribution of shape self.
Tensor _standard_gamma_grad(const Tensor& self, const Tensor& output);
// x: samples of the beta distribution of alpha and total - alpha; divided by 1 - x.
Tensor _dirichlet_grad(const Tensor& x, const Tensor& alpha, const Tensor& total);

}  // namespace sconce::cpu
