// Losses, and gradients, which packages of score models and of interatomic potentials call.
#include "src/cpu/attention/softmax.h"
#include "src/cpu/indexing/embedding_backward.h"
#include "src/cpu/normalisation/loss.h"
#include "src/cpu/normalisation/normalization.h"
#include "src/cpu/pooling/grid_sampler.h"
#include "src/cpu/pooling/resample_antialias.h"
#include "src/cpu/pooling/resample_backward.h"
#include "src/custom_ops/aten/aten.h"
#include "src/custom_ops/operator/boxed.h"
#include "src/operators/cpu_ops.h"

namespace sconce::custom_ops {
namespace {

std::array<Tensor, 3> slow_conv2d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& weight, IntSpan,
                                           IntSpan stride, IntSpan padding, std::span<const int32_t> output_mask) {
  constexpr int64_t kOne[] = {1, 1}, kZero[] = {0, 0};
  const int64_t channels[] = {weight.size(0)};
  return cpu::convolution_backward(grad_output, self, weight, IntSpan(channels), stride, padding, kOne, false, kZero, 1,
                                   output_mask);
}

// clang-format off
constexpr AtenRow kRows[] = {
    {"aten::_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor", boxed<cpu::_embedding_bag_backward>},
    {"aten::_grid_sampler_2d_cpu_fallback_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> (Tensor, Tensor)", boxed<cpu::grid_sampler_2d_cpu_fallback_backward>},
    {"aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor", boxed<cpu::_log_softmax_backward_data>},
    {"aten::_masked_softmax_backward(Tensor grad_output, Tensor output, Tensor mask, int? dim=None) -> Tensor", boxed<cpu::_masked_softmax_backward>},
    {"aten::_slow_conv2d_backward.output_mask(Tensor grad_output, Tensor self, Tensor weight, SymInt[2] kernel_size, SymInt[2] stride, SymInt[2] padding, bool[3] output_mask) -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)", boxed<slow_conv2d_backward>},
    {"aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor", boxed<cpu::_softmax_backward_data>},
    {"aten::_upsample_lanczos2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", boxed<upsample_aa_backward<cpu::low_pass_backward, LowPass::kLanczos>>},
    {"aten::_upsample_nearest_exact1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? scales=None) -> Tensor", boxed<cpu::_upsample_nearest_exact1d_backward>},
    {"aten::_upsample_nearest_exact2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor", boxed<cpu::_upsample_nearest_exact2d_backward>},
    {"aten::_upsample_nearest_exact3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor", boxed<cpu::_upsample_nearest_exact3d_backward>},
    {"aten::_weight_norm_interface_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor saved_norms, int dim) -> (Tensor, Tensor)", boxed<cpu::_weight_norm_interface_backward>},
    {"aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor", boxed<cpu::binary_cross_entropy>},
    {"aten::binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor", boxed<cpu::binary_cross_entropy_backward>},
    {"aten::binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor", boxed<cpu::binary_cross_entropy_with_logits>},
    {"aten::embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor", boxed<cpu::embedding_dense_backward>},
    {"aten::huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor", boxed<cpu::huber_loss>},
    {"aten::huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> Tensor", boxed<cpu::huber_loss_backward>},
    {"aten::mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", boxed<cpu::mse_loss>},
    {"aten::mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor", boxed<cpu::mse_loss_backward>},
    {"aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) -> Tensor", boxed<cpu::multi_margin_loss>},
    {"aten::multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, Tensor? weight=None, int reduction=1) -> Tensor", boxed<cpu::multi_margin_loss_backward>},
    {"aten::multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor is_target) -> Tensor", boxed<cpu::multilabel_margin_loss_backward>},
    {"aten::multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)", boxed<cpu::multilabel_margin_loss_forward>},
    {"aten::native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)", boxed<cpu::native_batch_norm_backward>},
    {"aten::native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)", boxed<cpu::native_group_norm_backward>},
    {"aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)", boxed<cpu::native_layer_norm_backward>},
    {"aten::nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor", boxed<cpu::nll_loss_backward>},
    {"aten::nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)", boxed<cpu::nll_loss_forward>},
    {"aten::nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor", boxed<cpu::nll_loss_backward>},
    {"aten::nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)", boxed<cpu::nll_loss_forward>},
    {"aten::reflection_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor", boxed<cpu::reflection_pad1d_backward>},
    {"aten::reflection_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor", boxed<cpu::reflection_pad2d_backward>},
    {"aten::reflection_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor", boxed<cpu::reflection_pad3d_backward>},
    {"aten::replication_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor", boxed<cpu::replication_pad1d_backward>},
    {"aten::replication_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor", boxed<cpu::replication_pad2d_backward>},
    {"aten::replication_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor", boxed<cpu::replication_pad3d_backward>},
    {"aten::smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor", boxed<cpu::smooth_l1_loss>},
    {"aten::smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> Tensor", boxed<cpu::smooth_l1_loss_backward>},
    {"aten::soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", boxed<cpu::soft_margin_loss>},
    {"aten::upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", boxed<cpu::upsample_bilinear2d_backward>},
    {"aten::upsample_nearest1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? scales=None) -> Tensor", boxed<cpu::upsample_nearest1d_backward>},
    {"aten::upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor", boxed<cpu::upsample_nearest2d_backward>},
    {"aten::upsample_nearest3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor", boxed<cpu::upsample_nearest3d_backward>},
};
// clang-format on

}  // namespace

std::span<const AtenRow> aten_gradient_rows() { return kRows; }

}  // namespace sconce::custom_ops
