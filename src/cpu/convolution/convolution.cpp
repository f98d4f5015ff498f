#include "src/cpu/convolution/convolution.h"

#include <array>

#include "sconce/check.h"
#include "src/cpu/convolution/direct/convolution_channels.h"
#include "src/cpu/convolution/direct/convolution_depthwise.h"
#include "src/cpu/convolution/direct/convolution_format.h"
#include "src/cpu/convolution/direct/convolution_planes.h"
#include "src/cpu/convolution/onednn_convolution.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"

namespace sconce {

namespace {

// Several images whose pixels are multiplied one by one, as those of a recurrent layer's steps: the pixels of one
// image, so that all are rows of one product.
bool joins(const ConvolutionShape& s, const ConvolutionOperands& o, const Tensor& output) {
  if (s.batch == 1 || s.groups != 1 || s.transposed || s.taps() != 1) return false;
  if (s.stride != Dims3{1, 1, 1} || s.padding != Dims3{} || s.input != s.output) return false;
  const auto evenly = [&](const ActivationView& v) {
    const int64_t step = s.input[2] > 1 ? v.pixel[2] : s.input[1] > 1 ? v.pixel[1] : s.input[0] > 1 ? v.pixel[0] : 0;
    int64_t stride = step;
    for (size_t d = 3; d-- > 0; stride *= s.input[d])
      if (s.input[d] > 1 && v.pixel[d] != stride) return false;
    return s.pixels() == 1 || v.batch == stride;
  };
  return evenly(o.input) && evenly(activation_view(output)) &&
         (o.fusion.combination == Combination::kNone || evenly(o.other));
}

void convolve_joined(ConvolutionShape s, ConvolutionOperands o, Tensor& output) {
  const int64_t pixels = s.batch * s.pixels();
  const auto join = [&](ActivationView& v) {
    const int64_t step = v.batch / s.pixels();
    v.pixel = {step, step, step};
    v.batch = step * pixels;
  };
  ActivationView out = activation_view(output);
  join(out);
  join(o.input);
  join(o.other);
  std::array<int64_t, 5> sizes{1, s.out_channels, 1, 1, 1}, strides{out.batch, out.channel};
  const auto rank = static_cast<size_t>(s.spatial + 2);
  sizes[rank - 1] = pixels;
  for (size_t d = 2; d < rank; ++d) strides[d] = d == rank - 1 ? out.pixel[2] : out.batch;
  s.batch = 1;
  s.input = s.output = {1, 1, pixels};
  Tensor joined = output.as_strided(IntSpan(sizes).first(rank), IntSpan(strides).first(rank), output.storage_offset());
  convolve(s, o, joined);
}

}  // namespace

void convolve(const ConvolutionShape& shape, const ConvolutionOperands& operands, Tensor& output) {
  if (output.numel() == 0) return;
  if (joins(shape, operands, output)) return convolve_joined(shape, operands, output);
  if (onednn::convolve(shape, operands, output)) return;
  const DType dtype = operands.input.dtype;
  const bool small_float = dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  if (depthwise_suits(shape, operands, output)) return convolve_depthwise(shape, operands, output);
  if (small_float && (output.stride(1) == 1 || operands.weight.blocked))
    return convolve_channels(shape, operands, output);
  convolve_planes(shape, operands, output);
}

namespace {

// As ATen's kernels are instantiated.
void check_dtypes(const ConvolutionShape& shape, const Tensor& input, const Tensor& weight, const Tensor* bias) {
  const DType dtype = input.dtype();
  SCONCE_CHECK(weight.dtype() == dtype, kInvalidArgument, "convolution: input type ", dtype_name(dtype),
               " and weight type ", dtype_name(weight.dtype()), " should be the same");
  const bool convertible = is_floating(dtype) && bias && is_floating(bias->dtype()) && !onednn_takes(dtype);
  SCONCE_CHECK(!bias || bias->dtype() == dtype || convertible, kInvalidArgument, "convolution: input type ",
               dtype_name(dtype), " and bias type ", bias ? dtype_name(bias->dtype()) : "", " should be the same");
  const bool narrow =
      dtype == DType::kUInt8 || dtype == DType::kInt8 || dtype == DType::kInt16 || dtype == DType::kInt32;
  const bool supported =
      is_floating(dtype) || dtype == DType::kInt64 || (narrow && !shape.transposed && shape.dilation == Dims3{1, 1, 1});
  SCONCE_CHECK(supported, kUnsupported, "convolution: not implemented for '", dtype_name(dtype), "'",
               narrow ? " with dilation or transposed" : "");
}

}  // namespace

namespace cpu {

// input [N, C, ...], weight [O, C/groups, ...], transposed [C, O/groups, ...]; one to three dimensions, any strides.
// Matches aten::convolution, torch 2.15: float32, float64, float16, bfloat16, int64, and the narrower integers
// without dilation.
Tensor convolution(const Tensor& input, const Tensor& weight, const Tensor* bias, IntSpan stride, IntSpan padding,
                   IntSpan dilation, bool transposed, IntSpan output_padding, int64_t groups) {
  const ConvolutionShape shape =
      convolution_shape({"convolution", stride, padding, dilation, output_padding, transposed, groups}, input.sizes(),
                        weight.sizes(), bias);
  if (shape.batch != 0 && shape.in_channels != 0) check_dtypes(shape, input, weight, bias);
  Tensor output = convolution_output(shape, input.dtype(), convolution_is_channels_last(shape, input, weight));
  if (output.numel() == 0) return output;
  ConvolutionOperands operands;
  operands.input = activation_view(input);
  operands.weight = weight_view(shape, weight);
  operands.bias = bias;
  Tensor converted;
  if (bias && bias->dtype() != input.dtype()) {
    converted = to_dtype(*bias, input.dtype());
    operands.bias = &converted;
  }
  if (weight.storage()->immutable()) operands.constant = weight.storage().get();
  convolve(shape, operands, output);
  return output;
}

}  // namespace cpu
}  // namespace sconce
