// Activation functions and their gradients. Floats of every width, halves computed in float; integers only if said so.
// Any strides; gradients of operands that broadcast. Match aten's of the same names, torch 2.15.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "src/tensor/scalar.h"

namespace sconce::cpu {

Tensor relu(const Tensor& self);  // integers too
Tensor elu(const Tensor& self, Scalar alpha, Scalar scale, Scalar input_scale);
Tensor elu_backward(const Tensor& grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result,
                    const Tensor& self_or_result);
Tensor celu(const Tensor& self, Scalar alpha);
Tensor gelu(const Tensor& self, std::string_view approximate);  // "none", "tanh"
Tensor gelu_backward(const Tensor& grad_output, const Tensor& self, std::string_view approximate);
Tensor glu(const Tensor& self, int64_t dim);
Tensor glu_backward(const Tensor& grad_output, const Tensor& self, int64_t dim);
Tensor hardsigmoid(const Tensor& self);
Tensor hardsigmoid_backward(const Tensor& grad_output, const Tensor& self);
Tensor hardswish(const Tensor& self);
Tensor hardswish_backward(const Tensor& grad_output, const Tensor& self);
Tensor hardtanh(const Tensor& self, Scalar min_val, Scalar max_val);  // integers too
Tensor hardtanh_backward(const Tensor& grad_output, const Tensor& self, Scalar min_val, Scalar max_val);
Tensor hardshrink(const Tensor& self, Scalar lambd);
Tensor softshrink(const Tensor& self, Scalar lambd);
Tensor leaky_relu(const Tensor& self, Scalar negative_slope);
Tensor leaky_relu_backward(const Tensor& grad_output, const Tensor& self, Scalar negative_slope, bool self_is_result);
std::array<Tensor, 2> log_sigmoid_forward(const Tensor& self);  // {result, exp(-|self|)}
Tensor log_sigmoid_backward(const Tensor& grad_output, const Tensor& self, const Tensor& buffer);
Tensor mish(const Tensor& self);
Tensor mish_backward(const Tensor& grad_output, const Tensor& self);
Tensor _prelu_kernel(const Tensor& self, const Tensor& weight);
std::array<Tensor, 2> _prelu_kernel_backward(const Tensor& grad_output, const Tensor& self, const Tensor& weight);
Tensor silu_backward(const Tensor& grad_output, const Tensor& self);
Tensor softplus(const Tensor& self, Scalar beta, Scalar threshold);
Tensor softplus_backward(const Tensor& grad_output, const Tensor& self, Scalar beta, Scalar threshold);
Tensor threshold(const Tensor& self, Scalar threshold, Scalar value);  // integers too
Tensor threshold_backward(const Tensor& grad_output, const Tensor& self, Scalar threshold);
// Complex gradients use the conjugate of the derivative.
Tensor sigmoid_backward(const Tensor& grad_output, const Tensor& output);
Tensor tanh_backward(const Tensor& grad_output, const Tensor& output);
Tensor logit_backward(const Tensor& grad_output, const Tensor& self, std::optional<double> eps);
Tensor native_dropout_backward(const Tensor& grad_output, const Tensor& mask, double scale);

// relu(self + alpha * other); integers too.
Tensor _add_relu(const Tensor& self, const Tensor& other, Scalar alpha);
Tensor _add_relu_number(const Tensor& self, Scalar other, Scalar alpha);

}  // namespace sconce::cpu
