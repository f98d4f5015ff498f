// Gradients of convolution. Match aten::convolution_backward (torch 2.15, CPU).
#include <algorithm>

#include "sconce/check.h"
#include "src/cpu/convolution/convolution_weight_gradient.h"
#include "src/cpu/convolution/direct/convolution_format.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/fill.h"
#include "src/tensor/spatial/convolution_shape.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

constexpr int64_t kZero[] = {0};

// A setting per spatial dimension; one number stands for all.
Shape per_dim(IntSpan values, int64_t dims) {
  Shape all;
  for (int64_t d = 0; d < dims; ++d) all.push_back(values[values.size() == 1 ? 0 : static_cast<size_t>(d)]);
  return all;
}

// How much smaller than the input the transposed convolution of the gradient comes out.
Shape missing_output(const Tensor& input, const Tensor& grad, const Tensor& weight, const Shape& stride,
                     const Shape& padding, const Shape& dilation) {
  Shape missing;
  for (int d = 0; d < stride.rank(); ++d) {
    const int64_t reached =
        (grad.size(d + 2) - 1) * stride[d] - 2 * padding[d] + dilation[d] * (weight.size(d + 2) - 1) + 1;
    missing.push_back(input.size(d + 2) - reached);
  }
  return missing;
}

// The start of every dimension but the first two.
Tensor cut(Tensor t, IntSpan sizes) {
  for (size_t d = 2; d < sizes.size(); ++d) t = narrow(t, static_cast<int64_t>(d), 0, sizes[d]);
  return t;
}

Tensor in_format(const Tensor& t, bool channels_last) {
  Tensor out = empty_of_format(t.sizes(), t.dtype(), channels_last);
  if (std::ranges::equal(out.strides(), t.strides())) return t;
  copy(t, out);
  return out;
}

// The gradient of the weight of a plain convolution from `input` to `output`: [O, C / groups, kernel...].
Tensor weight_gradient(const Tensor& input, const Tensor& output, const Tensor& weight, const Shape& stride,
                       const Shape& padding, const Shape& dilation, int64_t groups) {
  ConvolutionShape shape;
  shape.spatial = stride.rank();
  shape.batch = input.size(0);
  shape.in_channels = input.size(1);
  shape.out_channels = output.size(1);
  shape.groups = groups;
  for (int d = 0; d < stride.rank(); ++d) {
    const auto at = static_cast<size_t>(3 - stride.rank() + d);
    shape.input[at] = input.size(d + 2);
    shape.output[at] = output.size(d + 2);
    shape.kernel[at] = weight.size(d + 2);
    shape.stride[at] = stride[d];
    shape.padding[at] = padding[d];
    shape.dilation[at] = dilation[d];
  }
  return convolution_weight_gradient(shape, input, output, weight.sizes());
}

// The weights of the plain convolution that takes the gradient of the output to that of the input where the stride is
// 1: mirrored, channels in and out of a group in each other's place.
Tensor mirrored(const Tensor& weight, int64_t groups) {
  const int64_t out_each = weight.size(0) / groups, in_each = weight.size(1);
  Shape sizes(weight.sizes());
  sizes[0] = groups * in_each;
  sizes[1] = out_each;
  Tensor result = Tensor::empty(sizes, weight.dtype());
  const Tensor packed = contiguous(weight);
  const int64_t taps = weight.numel() / (weight.size(0) * in_each);
  dispatch_bytes(weight.itemsize(), [&]<class Bytes>() {
    const auto* from = static_cast<const Bytes*>(packed.data());
    auto* const to = static_cast<Bytes*>(result.data());
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t o = 0; o < out_each; ++o)
        for (int64_t i = 0; i < in_each; ++i, from += taps)
          std::reverse_copy(from, from + taps, to + ((g * in_each + i) * out_each + o) * taps);
  });
  return result;
}

// The gradient of the input of a plain convolution.
Tensor input_gradient(const Tensor& grad, const Tensor& input, const Tensor& weight, const Shape& stride,
                      const Shape& padding, const Shape& dilation, int64_t groups) {
  const Shape none = per_dim(IntSpan(kZero), stride.rank());
  Shape around;
  bool plain = weight.numel() > 0;
  for (int d = 0; d < stride.rank(); ++d) {
    around.push_back(dilation[d] * (weight.size(d + 2) - 1) - padding[d]);
    plain = plain && stride[d] == 1 && around[d] >= 0;
  }
  if (plain) return convolution(grad, mirrored(weight, groups), nullptr, stride, around, dilation, false, none, groups);
  return convolution(grad, weight, nullptr, stride, padding, dilation, true,
                     missing_output(input, grad, weight, stride, padding, dilation), groups);
}

Tensor bias_gradient(const Tensor& grad) {
  const int64_t channels = grad.size(1), batch = grad.size(0);
  const bool half = grad.dtype() == DType::kFloat16 || grad.dtype() == DType::kBFloat16;
  const Tensor packed = contiguous(half ? to_dtype(grad, DType::kFloat32) : grad);
  Tensor sums = Tensor::empty(IntSpan(&channels, 1), packed.dtype());
  const int64_t plane = grad.numel() == 0 ? 0 : grad.numel() / (channels * batch);
  dispatch_float_double(packed.dtype(), "convolution_backward", [&]<class T>() {
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t n = 0; n < batch; ++n) {
        const T* from = packed.data_as<T>() + (n * channels + c) * plane;
        for (int64_t i = 0; i < plane; ++i) sum += static_cast<double>(from[i]);
      }
      sums.data_as<T>()[c] = static_cast<T>(sum);
    }
  });
  return to_dtype(sums, grad.dtype());
}

}  // namespace

// By input, weight and bias; those whose output_mask is 0 are undefined. Arguments as in convolution.h; floating
// dtypes, any strides. Each gradient is a convolution itself.
std::array<Tensor, 3> convolution_backward(const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                                           std::optional<IntSpan>, IntSpan stride, IntSpan padding, IntSpan dilation,
                                           bool transposed, IntSpan output_padding, int64_t groups,
                                           std::span<const int32_t> output_mask) {
  const int64_t dims = input.dim() - 2;
  SCONCE_CHECK(dims >= 1 && dims <= 3 && weight.dim() == input.dim() && grad_output.dim() == input.dim(),
               kInvalidArgument, "convolution_backward: input ", describe(input), ", weight ", describe(weight),
               " and grad_output ", describe(grad_output), " do not fit");
  SCONCE_CHECK(output_mask.size() == 3, kInvalidArgument, "convolution_backward: output_mask must hold 3 flags");
  for (const IntSpan list : {stride, padding, dilation})
    SCONCE_CHECK(list.size() == 1 || static_cast<int64_t>(list.size()) == dims, kInvalidArgument,
                 "convolution_backward: expected 1 or ", dims, " numbers, got ", to_string(list));
  if (!is_floating(input.dtype())) fail_dispatch(input.dtype(), "convolution_backward");
  SCONCE_CHECK(weight.dtype() == input.dtype() && grad_output.dtype() == input.dtype(), kInvalidArgument,
               "convolution_backward: expected one dtype, got ", dtype_name(input.dtype()), ", ",
               dtype_name(weight.dtype()), " and ", dtype_name(grad_output.dtype()));
  const int64_t out_channels = transposed ? weight.size(1) * groups : weight.size(0);
  SCONCE_CHECK(groups >= 1 && grad_output.size(0) == input.size(0) && grad_output.size(1) == out_channels &&
                   input.size(1) == (transposed ? weight.size(0) : weight.size(1) * groups),
               kInvalidArgument, "convolution_backward: channels of input ", to_string(input.sizes()), ", weight ",
               to_string(weight.sizes()), " and grad_output ", to_string(grad_output.sizes()), " in ", groups,
               " groups do not fit");
  const Shape s = per_dim(stride, dims), p = per_dim(padding, dims), d = per_dim(dilation, dims);
  const Shape none = per_dim(IntSpan(kZero), dims);
  const ConvolutionShape shape =
      convolution_shape({"convolution_backward", stride, padding, dilation, output_padding, transposed, groups},
                        input.sizes(), weight.sizes(), nullptr);
  const bool channels_last = convolution_backend_is_channels_last(shape, input, weight);
  std::array<Tensor, 3> results;
  if (input.numel() == 0 || grad_output.numel() == 0) {
    if (output_mask[0]) zero(results[0] = Tensor::empty(input.sizes(), input.dtype()));
    if (output_mask[1]) zero(results[1] = Tensor::empty(weight.sizes(), weight.dtype()));
    if (output_mask[2]) zero(results[2] = Tensor::empty(IntSpan(&out_channels, 1), input.dtype()));
    return results;
  }
  // Output padding beyond the stride leaves room for one more step than the input had.
  if (output_mask[0])
    results[0] = transposed
                     ? cut(convolution(grad_output, weight, nullptr, s, p, d, false, none, groups), input.sizes())
                     : input_gradient(grad_output, input, weight, s, p, d, groups);
  // A transposed convolution is the gradient of a plain one with respect to its input.
  if (output_mask[1])
    results[1] = transposed ? weight_gradient(grad_output, input, weight, s, p, d, groups)
                            : weight_gradient(input, grad_output, weight, s, p, d, groups);
  for (Tensor* gradient : {&results[0], &results[1]})
    if (gradient->defined()) *gradient = in_format(*gradient, channels_last);
  if (output_mask[2]) results[2] = bias_gradient(grad_output);
  return results;
}

}  // namespace sconce::cpu
