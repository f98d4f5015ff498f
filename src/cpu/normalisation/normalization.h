// Layer, group and batch normalisation, and the gradients. Floating dtypes, any strides; halves are computed in float.
// Parameters have the input's dtype or float32, statistics the parameters' dtype. Results are row-major; those of
// batch norms have the input's memory format. Match aten's of the same names (torch 2.15, CPU). kInvalidArgument for
// sizes.
#pragma once

#include <array>
#include <span>

#include "sconce/tensor.h"

namespace sconce::cpu {

// {output, mean, 1 / deviation}: over the last dimensions.
std::array<Tensor, 3> native_layer_norm(const Tensor& input, IntSpan normalized_shape, const Tensor* weight,
                                        const Tensor* bias, double eps);
std::array<Tensor, 3> native_layer_norm_backward(const Tensor& grad_out, const Tensor& input, IntSpan normalized_shape,
                                                 const Tensor& mean, const Tensor& rstd, const Tensor* weight,
                                                 const Tensor* bias, std::span<const int32_t> output_mask);

// input of N * C * HxW elements; {output, mean [N, group], 1 / deviation}
std::array<Tensor, 3> native_group_norm(const Tensor& input, const Tensor* weight, const Tensor* bias, int64_t N,
                                        int64_t C, int64_t HxW, int64_t group, double eps);
std::array<Tensor, 3> native_group_norm_backward(const Tensor& grad_out, const Tensor& input, const Tensor& mean,
                                                 const Tensor& rstd, const Tensor* weight, int64_t N, int64_t C,
                                                 int64_t HxW, int64_t group, std::span<const int32_t> output_mask);

// input [N, C, ...]. In training {output, mean, 1 / deviation} of the batch, and running statistics, if given, are
// written; else the running ones are used, and the last two have no elements.
std::array<Tensor, 3> native_batch_norm(const Tensor& input, const Tensor* weight, const Tensor* bias,
                                        const Tensor* running_mean, const Tensor* running_var, bool training,
                                        double momentum, double eps);
std::array<Tensor, 3> native_batch_norm_backward(const Tensor& grad_out, const Tensor& input, const Tensor* weight,
                                                 const Tensor* running_mean, const Tensor* running_var,
                                                 const Tensor* save_mean, const Tensor* save_invstd, bool train,
                                                 double eps, std::span<const int32_t> output_mask);
// {mean, variance} of the batch, without a correction.
std::array<Tensor, 2> batch_norm_update_stats(const Tensor& input, const Tensor* running_mean,
                                              const Tensor* running_var, double momentum);

// By the direction v and the length g of weights v * g / norm(v), norms over all dimensions but `dim`.
std::array<Tensor, 2> _weight_norm_interface_backward(const Tensor& grad_w, const Tensor& saved_v,
                                                      const Tensor& saved_g, const Tensor& saved_norms, int64_t dim);

}  // namespace sconce::cpu
