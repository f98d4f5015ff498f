// Convolutions of quantised input and weight, in one to three dimensions. Matches onednn::qconv_pointwise and
// qconv2d_pointwise.binary, torch 2.15, which do not look at the weight's zero points.
//
// X [N, C, ...] of uint8 or float8_e4m3fn with one scale and zero point; weight [O, C/groups, ...] of int8
// (float8_e4m3fn where X is), packed by oneDNN or plain; its scales [O] or [1]; B [O] of a floating dtype.
// Result channels last, of output_dtype (uint8, int8, float32, bfloat16, float8_e4m3fn; X's without one). Activations
// none, relu, hardtanh, hardswish, swish. kInvalidArgument names what does not fit.
#include <algorithm>
#include <vector>

#include "sconce/check.h"
#include "src/cpu/convolution/convolution.h"
#include "src/cpu/convolution/direct/convolution_bytes.h"
#include "src/cpu/layers/quantised.h"
#include "src/cpu/onednn/mkldnn_weight.h"
#include "src/cpu/vector/channel_values.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"

namespace sconce {
namespace {

constexpr std::string_view kName = "quantized pointwise conv";

// The sizes of a weight, as for an input of that many dimensions: PyTorch packs one-dimensional ones with a height
// of 1.
std::vector<int64_t> weight_sizes(const Tensor& weight, const BlockedWeight* blocked, int64_t rank, int64_t groups) {
  std::vector<int64_t> sizes;
  if (!blocked) {
    sizes.assign(weight.sizes().begin(), weight.sizes().end());
  } else {
    SCONCE_CHECK(blocked->groups == groups && blocked->dims.size() >= (groups > 1 ? 4u : 3u), kInvalidArgument, kName,
                 ": the weight was packed for ", blocked->groups, " groups and dimensions ", to_string(blocked->dims),
                 ", not for ", groups, " groups");
    sizes.assign(blocked->dims.begin() + (groups > 1 ? 1 : 0), blocked->dims.end());
    sizes[0] *= groups;
  }
  if (rank == 3 && sizes.size() == 4 && sizes[2] == 1) sizes.erase(sizes.begin() + 2);
  return sizes;
}

// The weight as int32, row-major [O, C/groups, ...].
Tensor widen(const Tensor& weight, const BlockedWeight* blocked, const std::vector<int64_t>& sizes) {
  Tensor wide = Tensor::empty(sizes, DType::kInt32);
  std::vector<int8_t> own;
  const int8_t* from;
  Tensor plain;
  if (blocked) {
    own.resize(static_cast<size_t>(wide.numel()));
    blocked->to_bytes(weight.storage()->data(), own.data());
    from = own.data();
  } else {
    plain = contiguous(weight);
    from = plain.data_as<int8_t>();
  }
  std::copy_n(from, wide.numel(), wide.data_as<int32_t>());
  return wide;
}

struct Quantised {
  const Tensor &x, &x_scale, &x_zero_point, &weight, &scales;
  const Tensor* bias;
  IntSpan stride, padding, dilation;
  int64_t groups;
};

// As a pass of its own: sums = conv(x - x_zero, w), channels last. For zero points that no uint8 holds, which padding
// would need.
Tensor wide_sums(const Quantised& q, const ConvolutionShape& shape, const BlockedWeight* blocked,
                 const std::vector<int64_t>& sizes, int32_t x_zero) {
  Tensor sums = convolution_output(shape, DType::kInt32, true);
  const Tensor bytes = contiguous(q.x);
  Tensor x = Tensor::empty(bytes.sizes(), DType::kInt32);
  for (int64_t i = 0; i < x.numel(); ++i) x.data_as<int32_t>()[i] = bytes.data_as<uint8_t>()[i] - x_zero;
  const Tensor wide = widen(q.weight, blocked, sizes);
  ConvolutionOperands operands;
  operands.input = activation_view(x);
  operands.weight = weight_view(shape, wide);
  convolve(shape, operands, sums);
  return sums;
}

// Writes `output`, or answers the sums that become it.
Tensor convolve_integers(const Quantised& q, const ConvolutionShape& shape, const BlockedWeight* blocked,
                         const std::vector<int64_t>& sizes, const QuantisedResult& result, Tensor& output) {
  const double given = single_value(kName, q.x_zero_point, "act_zero_point", 0);
  const auto x_zero = static_cast<int32_t>(given);
  if (shape.padding != Dims3{} && (x_zero < 0 || x_zero > 255)) return wide_sums(q, shape, blocked, sizes, x_zero);
  ConvolutionOperands operands;
  operands.input = activation_view(q.x);
  operands.weight = blocked ? blocked_view(shape, *blocked, q.weight.storage()->data()) : weight_view(shape, q.weight);
  if (q.weight.storage()->immutable()) operands.constant = q.weight.storage().get();
  const auto finish = byte_finish(result, output.dtype());
  Tensor sums;
  if (!finish) sums = convolution_output(shape, DType::kInt32, true);
  convolve_bytes(shape, operands, x_zero, finish ? &*finish : nullptr, finish ? output : sums);
  return sums;
}

Tensor float_sums(const Quantised& q, const ConvolutionShape& shape) {
  const Tensor x = to_dtype(q.x, DType::kFloat32), w = to_dtype(q.weight, DType::kFloat32);
  Tensor sums = convolution_output(shape, DType::kFloat32, true);
  ConvolutionOperands operands;
  operands.input = activation_view(x);
  operands.weight = weight_view(shape, w);
  convolve(shape, operands, sums);
  return sums;
}

Tensor qconv(const Quantised& q, QuantisedResult& result, std::optional<DType> output_dtype) {
  const Tensor& X = q.x;
  const bool small_float = X.dtype() == DType::kFloat8E4M3FN;
  SCONCE_CHECK(small_float || X.dtype() == DType::kUInt8, kInvalidArgument, kName,
               ": Input tensor should have uint8 (unsigned char) or fp8 data type, not ", dtype_name(X.dtype()));
  QuantisedOther& other = result.other;
  const bool sum = other.how == QuantisedOther::How::kSum;
  const DType out_dtype = sum ? other.tensor.dtype() : output_dtype.value_or(X.dtype());
  result.quantised = out_dtype == DType::kUInt8 || out_dtype == DType::kInt8;
  SCONCE_CHECK(result.quantised || out_dtype == DType::kFloat32 || out_dtype == DType::kBFloat16 ||
                   (small_float && out_dtype == DType::kFloat8E4M3FN),
               kUnsupported, kName, ": results of ", dtype_name(out_dtype), " are not supported");
  if (!result.quantised && !small_float) result.output_scale = 1;

  BlockedWeight own;
  const BlockedWeight* blocked = q.weight.layout() == Layout::kMkldnn ? &blocked_weight(q.weight, own) : nullptr;
  const DType weight_dtype = blocked ? blocked->dtype : q.weight.dtype();
  SCONCE_CHECK(weight_dtype == (small_float ? X.dtype() : DType::kInt8), kInvalidArgument, kName, ": a weight of ",
               dtype_name(weight_dtype), " does not fit an input of ", dtype_name(X.dtype()));
  const std::vector<int64_t> sizes = weight_sizes(q.weight, blocked, X.dim(), q.groups);
  const ConvolutionShape shape =
      convolution_shape({kName, q.stride, q.padding, q.dilation, {}, false, q.groups}, X.sizes(), sizes, q.bias);
  const int64_t n = shape.out_channels, m = shape.batch * shape.pixels();

  Tensor output = convolution_output(shape, out_dtype, true);
  if (sum) {
    SCONCE_CHECK(std::ranges::equal(other.tensor.sizes(), output.sizes()), kInvalidArgument, kName, ": accum of size ",
                 to_string(other.tensor.sizes()), " does not fit output of size ", to_string(output.sizes()));
    bool same = true;
    for (int64_t d = 0; d < output.dim(); ++d)
      same &= output.size(d) <= 1 || other.tensor.stride(d) == output.stride(d);
    SCONCE_CHECK(same, kInvalidArgument, kName,
                 ": For post op sum, accum tensor must be contiguous, channels last, not ", describe(other.tensor));
    check_sum(kName, other, out_dtype);
    output = other.tensor;
  }
  if (output.numel() == 0) return output;
  auto x_scale = static_cast<float>(single_value(kName, q.x_scale, "act_scale", 1));
  if (blocked) x_scale /= blocked->scale_adjust;
  const Tensor scales = channel_values(kName, q.scales, n, "weight_scales");
  result.scale = Tensor::empty({&n, 1}, DType::kFloat32);
  for (int64_t j = 0; j < n; ++j) result.scale.data_as<float>()[j] = x_scale * scales.data_as<float>()[j];
  if (q.bias) result.bias = channel_values(kName, *q.bias, n, "bias");
  const Tensor sums = small_float ? float_sums(q, shape) : convolve_integers(q, shape, blocked, sizes, result, output);
  if (sums.defined()) finish_quantised(result, sums, m, n, output);
  return output;
}

}  // namespace

namespace cpu {

Tensor _qconv_pointwise_tensor(const Tensor& X, const Tensor& act_scale, const Tensor& act_zero_point,
                               const Tensor& onednn_weight, const Tensor& weight_scales, const Tensor&, const Tensor* B,
                               IntSpan stride, IntSpan padding, IntSpan dilation, int64_t groups, double output_scale,
                               int64_t output_zero_point, std::optional<DType> output_dtype, std::string_view attr,
                               std::span<const double* const> post_op_args, std::optional<std::string_view> algorithm) {
  SCONCE_CHECK(attr == "none" || attr == "relu" || attr == "hardtanh" || attr == "hardswish" || attr == "swish",
               kInvalidArgument, "Unsupported post op ", attr, " for quantized pointwise conv", X.dim() - 2, "d.");
  QuantisedResult result;
  result.output_scale = output_scale;
  result.output_zero_point = output_zero_point;
  parse_activation(kName, attr, post_op_args, algorithm, result.fusion);
  return qconv({X, act_scale, act_zero_point, onednn_weight, weight_scales, B, stride, padding, dilation, groups},
               result, output_dtype);
}

// The name before torch 2.8, for two dimensions only.
Tensor _qconv2d_pointwise_tensor(const Tensor& X, const Tensor& act_scale, const Tensor& act_zero_point,
                                 const Tensor& onednn_weight, const Tensor& weight_scales,
                                 const Tensor& weight_zero_points, const Tensor* B, IntSpan stride, IntSpan padding,
                                 IntSpan dilation, int64_t groups, double output_scale, int64_t output_zero_point,
                                 std::optional<DType> output_dtype, std::string_view attr,
                                 std::span<const double* const> post_op_args,
                                 std::optional<std::string_view> algorithm) {
  return _qconv_pointwise_tensor(X, act_scale, act_zero_point, onednn_weight, weight_scales, weight_zero_points, B,
                                 stride, padding, dilation, groups, output_scale, output_zero_point, output_dtype, attr,
                                 post_op_args, algorithm);
}

// The result replaces `accum` [N, O, ...], channels last, of its dtype: (accum - accum_zero_point) * accum_scale is
// added. binary_attr "sum", unary_attr none or relu.
Tensor _qconv2d_pointwise_binary_tensor(const Tensor& X, const Tensor& act_scale, const Tensor& act_zero_point,
                                        const Tensor& onednn_weight, const Tensor& weight_scales, const Tensor&,
                                        const Tensor& accum, const Tensor* B, IntSpan stride_args, IntSpan padding_args,
                                        IntSpan dilation_args, int64_t groups, double output_scale,
                                        int64_t output_zero_point, std::optional<DType> output_dtype,
                                        double accum_scale, int64_t accum_zero_point, std::string_view binary_attr,
                                        std::optional<double> alpha, std::optional<std::string_view> unary_attr,
                                        std::span<const double* const> unary_scalars,
                                        std::optional<std::string_view> unary_algorithm) {
  const std::string_view unary = unary_attr.value_or("none");
  SCONCE_CHECK(binary_attr == "sum" && (unary == "none" || unary == "relu"), kInvalidArgument,
               "post_op sum or post_op sum_relu is supported for quantized pointwise conv2d. Got binary_post_op: ",
               binary_attr, " unary_post_op: ", unary, ".");
  SCONCE_CHECK(!alpha || *alpha == 1, kInvalidArgument, kName, ": alpha must be none or 1, not ", alpha.value_or(0));
  QuantisedResult result;
  result.output_scale = output_scale;
  result.output_zero_point = output_zero_point;
  parse_activation(kName, unary, unary_scalars, unary_algorithm, result.fusion);
  result.other = {QuantisedOther::How::kSum, accum, accum_scale, static_cast<double>(accum_zero_point)};
  return qconv(
      {X, act_scale, act_zero_point, onednn_weight, weight_scales, B, stride_args, padding_args, dilation_args, groups},
      result, output_dtype);
}

}  // namespace cpu
}  // namespace sconce
