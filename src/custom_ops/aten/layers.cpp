// Layers of networks: convolutions under all their names, attention, normalisation, resizing.
#include "sconce/check.h"
#include "src/cpu/attention/softmax.h"
#include "src/cpu/layers/encoder.h"
#include "src/cpu/matmul/weight_only.h"
#include "src/cpu/normalisation/normalization.h"
#include "src/cpu/pooling/grid_sampler.h"
#include "src/cpu/pooling/resample.h"
#include "src/cpu/pooling/resample_antialias.h"
#include "src/custom_ops/aten/aten.h"
#include "src/custom_ops/operator/boxed.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/dimensions.h"

namespace sconce::custom_ops {
namespace {

using OptInts = std::optional<IntSpan>;

constexpr int64_t kOnes[] = {1, 1, 1}, kNone[] = {0, 0, 0};
IntSpan ones(IntSpan like) { return IntSpan(kOnes).first(like.size()); }
IntSpan none(IntSpan like) { return IntSpan(kNone).first(like.size()); }

// An image without a batch becomes a batch of one.
Tensor batched(const char* name, const Tensor& self, const Tensor& weight, IntSpan kernel_size) {
  const auto rank = static_cast<int64_t>(kernel_size.size());
  SCONCE_CHECK(rank == 2 || rank == 3, kInvalidArgument, name, ": a kernel of ", rank, " dimensions");
  SCONCE_CHECK(
      weight.dim() == rank + 2 && std::equal(kernel_size.begin(), kernel_size.end(), weight.sizes().begin() + 2),
      kInvalidArgument, name, ": kernel_size ", to_string(kernel_size), " does not go with weight ", describe(weight));
  SCONCE_CHECK(self.dim() == rank + 1 || self.dim() == rank + 2, kInvalidArgument, name, ": expected ", rank + 1,
               "D or ", rank + 2, "D input, got ", describe(self));
  return self.dim() == rank + 1 ? cpu::unsqueeze(self, 0) : self;
}
Tensor slow_conv(const Tensor& self, const Tensor& weight, IntSpan kernel_size, const Tensor* bias, IntSpan stride,
                 IntSpan padding) {
  return cpu::convolution(batched("slow_conv_forward", self, weight, kernel_size), weight, bias, stride, padding,
                          ones(kernel_size), false, none(kernel_size), 1);
}
Tensor slow_conv_dilated(const Tensor& self, const Tensor& weight, IntSpan kernel_size, const Tensor* bias,
                         IntSpan stride, IntSpan padding, IntSpan dilation) {
  const Tensor out = cpu::convolution(batched("slow_conv_dilated", self, weight, kernel_size), weight, bias, stride,
                                      padding, dilation, false, none(kernel_size), 1);
  return out.dim() == self.dim() ? out : cpu::squeeze_dim(out, 0);
}
Tensor slow_conv_transpose(const Tensor& self, const Tensor& weight, IntSpan kernel_size, const Tensor* bias,
                           IntSpan stride, IntSpan padding, IntSpan output_padding, IntSpan dilation) {
  return cpu::convolution(batched("slow_conv_transpose", self, weight, kernel_size), weight, bias, stride, padding,
                          dilation, true, output_padding, 1);
}
Tensor mkldnn_convolution(const Tensor& self, const Tensor& weight, const Tensor* bias, IntSpan padding, IntSpan stride,
                          IntSpan dilation, int64_t groups) {
  return cpu::convolution(self, weight, bias, stride, padding, dilation, false, none(stride), groups);
}
// self [time, batch, channels], weight [width, channels, out]
Tensor conv_tbc(const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t pad) {
  SCONCE_CHECK(self.dim() == 3 && weight.dim() == 3 && bias.dim() == 1, kInvalidArgument,
               "conv_tbc: Input must have 3 dims: time, batch, in_channel, and so must weight; bias must be 1-D");
  SCONCE_CHECK(self.size(2) == weight.size(1) && bias.size(0) == weight.size(2), kInvalidArgument,
               "conv_tbc: Input dim 2 (input channels) is not == dim 1 in the weight tensor (input channels), or bias "
               "size is not == dim 2 in the weight tensor (output channels)");
  const int64_t channels_second[] = {1, 2, 0}, kernel[] = {2, 1, 0}, back[] = {2, 0, 1}, one[] = {1}, padding[] = {pad},
                zero[] = {0};
  return contiguous(
      cpu::permute(cpu::convolution(contiguous(cpu::permute(self, channels_second)),
                                    contiguous(cpu::permute(weight, kernel)), &bias, one, padding, one, false, zero, 1),
                   back));
}

std::array<Tensor, 3> batch_norm_no_stats(const Tensor& input, const Tensor* weight, const Tensor* bias, bool training,
                                          double momentum, double eps) {
  return cpu::native_batch_norm(input, weight, bias, nullptr, nullptr, training, momentum, eps);
}
std::array<Tensor, 3> batch_norm_no_training(const Tensor& input, const Tensor* weight, const Tensor* bias,
                                             const Tensor& running_mean, const Tensor& running_var, double momentum,
                                             double eps) {
  return cpu::native_batch_norm(input, weight, bias, &running_mean, &running_var, false, momentum, eps);
}
// Returns updated running statistics instead of changing them in place.
std::array<Tensor, 5> batch_norm_functional(const Tensor& input, const Tensor* weight, const Tensor* bias,
                                            const Tensor& running_mean, const Tensor& running_var, bool training,
                                            double momentum, double eps) {
  const Tensor mean = clone(running_mean), var = clone(running_var);
  auto [out, save_mean, save_invstd] =
      cpu::native_batch_norm(input, weight, bias, &mean, &var, training, momentum, eps);
  return {out, save_mean, save_invstd, mean, var};
}
Tensor no_reserve() {
  const int64_t none[] = {0};
  return Tensor::empty(none, DType::kUInt8);
}
std::array<Tensor, 6> batch_norm_with_update(const Tensor& input, const Tensor* weight, const Tensor* bias,
                                             const Tensor& running_mean, const Tensor& running_var, double momentum,
                                             double eps) {
  auto [out, save_mean, save_invstd, mean, var] =
      batch_norm_functional(input, weight, bias, running_mean, running_var, true, momentum, eps);
  return {out, save_mean, save_invstd, no_reserve(), mean, var};
}
std::array<Tensor, 4> batch_norm_no_update(const Tensor& input, const Tensor* weight, const Tensor* bias,
                                           const Tensor* running_mean, const Tensor* running_var, double momentum,
                                           double eps) {
  const bool training = !running_mean || !running_var;
  auto [out, save_mean, save_invstd] =
      cpu::native_batch_norm(input, weight, bias, training ? nullptr : running_mean, training ? nullptr : running_var,
                             training, momentum, eps);
  return {out, save_mean, save_invstd, no_reserve()};
}

// clang-format off
constexpr AtenRow kRows[] = {
    {"aten::_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)", boxed<batch_norm_no_update>},
    {"aten::_batch_norm_with_update_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)", boxed<batch_norm_with_update>},
    {"aten::_convert_weight_to_int4pack_for_cpu(Tensor self, int innerKTiles) -> Tensor", boxed<cpu::_convert_weight_to_int4pack_for_cpu>},
    {"aten::_grid_sampler_2d_cpu_fallback(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor", boxed<cpu::grid_sampler_2d_cpu_fallback>},
    {"aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", boxed<cpu::_log_softmax>},
    {"aten::_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor", boxed<cpu::_masked_softmax>},
    {"aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)", boxed<batch_norm_no_stats>},
    {"aten::_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)", boxed<batch_norm_functional>},
    {"aten::_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)", boxed<batch_norm_no_training>},
    {"aten::_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)", boxed<cpu::_native_multi_head_attention>},
    {"aten::_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", boxed<cpu::_safe_softmax>},
    {"aten::_slow_conv2d_forward(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias, SymInt[2] stride, SymInt[2] padding) -> Tensor", boxed<slow_conv>},
    {"aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", boxed<cpu::_softmax>},
    {"aten::_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) -> (Tensor, Tensor, Tensor)", boxed<cpu::_transform_bias_rescale_qkv>},
    {"aten::_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor", boxed<cpu::_transformer_encoder_layer_fwd>},
    {"aten::_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor", boxed<cpu::_upsample_nearest_exact1d>},
    {"aten::_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor", boxed<cpu::_upsample_nearest_exact2d>},
    {"aten::_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor", boxed<cpu::_upsample_nearest_exact3d>},
    {"aten::batch_norm_update_stats(Tensor input, Tensor? running_mean, Tensor? running_var, float momentum) -> (Tensor, Tensor)", boxed<cpu::batch_norm_update_stats>},
    {"aten::conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor", boxed<conv_tbc>},
    {"aten::grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor", boxed<cpu::grid_sampler_2d>},
    {"aten::mkldnn_convolution(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, SymInt[] stride, SymInt[] dilation, SymInt groups) -> Tensor", boxed<mkldnn_convolution>},
    {"aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)", boxed<cpu::native_batch_norm>},
    {"aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)", boxed<cpu::native_group_norm>},
    {"aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)", boxed<cpu::native_layer_norm>},
    {"aten::slow_conv3d_forward(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias, SymInt[3] stride, SymInt[3] padding) -> Tensor", boxed<slow_conv>},
    {"aten::slow_conv_dilated2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] dilation=[1, 1]) -> Tensor", boxed<slow_conv_dilated>},
    {"aten::slow_conv_dilated3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1]) -> Tensor", boxed<slow_conv_dilated>},
    {"aten::slow_conv_transpose2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt[2] dilation=[1, 1]) -> Tensor", boxed<slow_conv_transpose>},
    {"aten::slow_conv_transpose3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1]) -> Tensor", boxed<slow_conv_transpose>},
    {"aten::upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", boxed<cpu::upsample_bicubic2d>},
    {"aten::upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", boxed<cpu::upsample_bilinear2d>},
    {"aten::upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor", boxed<cpu::upsample_linear1d>},
    {"aten::upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor", boxed<cpu::upsample_nearest1d>},
    {"aten::upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor", boxed<cpu::upsample_nearest2d>},
    {"aten::upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor", boxed<cpu::upsample_nearest3d>},
    {"aten::upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor", boxed<cpu::upsample_trilinear3d>},
};
// clang-format on

}  // namespace

std::span<const AtenRow> aten_layer_rows() { return kRows; }

}  // namespace sconce::custom_ops
