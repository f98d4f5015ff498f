// Convolutions with weights that PyTorch packed with oneDNN, and with fused operations.
//
// Tensors are float32, float16 or bfloat16, sums float32. Weights are opaque (layout kMkldnn) or plain; bias [O] of any
// of these dtypes. Attributes: post_ops.h. Matches mkldnn::_convolution_pointwise and its
// relatives (aten/src/ATen/native/mkldnn/Conv.cpp), torch 2.15.
// kInvalidArgument for shapes, dtypes and attributes that do not fit, kUnsupported for other dtypes and packings.
#include <algorithm>
#include <optional>
#include <string_view>

#include "sconce/check.h"
#include "src/cpu/convolution/convolution.h"
#include "src/cpu/onednn/mkldnn_weight.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"

namespace sconce {
namespace {

// Shape, operands and what keeps them alive.
struct Prepared {
  ConvolutionShape shape;
  ConvolutionOperands operands;
  BlockedWeight own;
  bool channels_last = false;
};

void check_floating(std::string_view name, std::string_view what, const Tensor& t) {
  SCONCE_CHECK(is_floating(t.dtype()) && t.dtype() != DType::kFloat64, kUnsupported, name, ": not implemented for '",
               dtype_name(t.dtype()), "' ", what);
}

// The sizes a plain weight would have.
std::vector<int64_t> plain_sizes(std::string_view name, const BlockedWeight& w, bool transposed, int64_t groups) {
  SCONCE_CHECK(w.groups == groups, kInvalidArgument, name, ": the weight was packed for ", w.groups,
               " groups, not for ", groups);
  const size_t first = groups > 1 ? 1 : 0;
  SCONCE_CHECK(w.dims.size() >= first + 3, kInvalidArgument, name, ": a packed weight of dimensions ",
               to_string(w.dims), " is not a convolution's");
  std::vector<int64_t> sizes(w.dims.begin() + static_cast<std::ptrdiff_t>(first), w.dims.end());
  // Output channels come first in every packed weight.
  if (transposed) std::swap(sizes[0], sizes[1]);
  sizes[0] *= groups;
  return sizes;
}

void prepare(Prepared& p, const ConvolutionArguments& arguments, const Tensor& input, const Tensor& weight,
             const Tensor* bias) {
  check_floating(arguments.name, "input", input);
  check_floating(arguments.name, "weight", weight);
  if (bias) check_floating(arguments.name, "bias", *bias);
  if (weight.layout() == Layout::kMkldnn) {
    const BlockedWeight& blocked = blocked_weight(weight, p.own);
    p.shape = convolution_shape(arguments, input.sizes(),
                                plain_sizes(arguments.name, blocked, arguments.transposed, arguments.groups), bias);
    p.operands.weight = blocked_view(p.shape, blocked, weight.storage()->data());
    p.channels_last = p.shape.spatial > 1;
  } else {
    SCONCE_CHECK(weight.dtype() == input.dtype(), kInvalidArgument, arguments.name, ": input type ",
                 dtype_name(input.dtype()), " and weight type ", dtype_name(weight.dtype()), " should be the same");
    p.shape = convolution_shape(arguments, input.sizes(), weight.sizes(), bias);
    p.operands.weight = weight_view(p.shape, weight);
    p.channels_last =
        p.shape.spatial > 1 && p.shape.batch > 0 &&
        (is_channels_last(input.sizes(), input.strides()) || is_channels_last(weight.sizes(), weight.strides()));
  }
  p.operands.input = activation_view(input);
  p.operands.bias = bias;
  if (weight.storage()->immutable()) p.operands.constant = weight.storage().get();
}

// Two storages may view the same memory.
bool share_memory(const Storage& a, const Storage& b) noexcept {
  const auto begin = [](const Storage& s) { return reinterpret_cast<uintptr_t>(s.data()); };
  return begin(a) < begin(b) + b.bytes() && begin(b) < begin(a) + a.bytes();
}

Tensor pointwise(const ConvolutionArguments& arguments, const Tensor& input, const Tensor& weight, const Tensor* bias,
                 std::string_view attribute, std::span<const double* const> scalars,
                 std::optional<std::string_view> algorithm) {
  Prepared p;
  parse_activation(arguments.name, attribute, scalars, algorithm, p.operands.fusion);
  prepare(p, arguments, input, weight, bias);
  Tensor output = convolution_output(p.shape, input.dtype(), p.channels_last);
  convolve(p.shape, p.operands, output);
  return output;
}

void fuse_binary(Prepared& p, std::string_view name, const Tensor& input, const Tensor& other, std::string_view binary,
                 std::optional<double> alpha, std::optional<std::string_view> unary,
                 std::span<const double* const> scalars, std::optional<std::string_view> algorithm) {
  SCONCE_CHECK(!alpha || *alpha == 1.0, kInvalidArgument, name, ": the alpha value should be none or 1.0, not ",
               alpha.value_or(0));
  SCONCE_CHECK(other.dtype() == input.dtype(), kInvalidArgument, name, ": input type ", dtype_name(input.dtype()),
               " and other type ", dtype_name(other.dtype()), " should be the same");
  Fusion& fusion = p.operands.fusion;
  parse_activation(name, unary.value_or("none"), scalars, algorithm, fusion);
  fusion.combination = parse_combination(name, binary);
}

}  // namespace

namespace cpu {

// X [N, C, ...], W [O, C/groups, ...]: activation(convolution). Channels last where X or W is, or where W is opaque.
Tensor mkldnn__convolution_pointwise(const Tensor& X, const Tensor& W, const Tensor* B, IntSpan padding, IntSpan stride,
                                     IntSpan dilation, int64_t groups, std::string_view attr,
                                     std::span<const double* const> scalars,
                                     std::optional<std::string_view> algorithm) {
  return pointwise({"mkldnn__convolution_pointwise", stride, padding, dilation, {}, false, groups}, X, W, B, attr,
                   scalars, algorithm);
}

// W [C, O/groups, ...].
Tensor mkldnn__convolution_transpose_pointwise(const Tensor& X, const Tensor& W, const Tensor* B, IntSpan padding,
                                               IntSpan output_padding, IntSpan stride, IntSpan dilation, int64_t groups,
                                               std::string_view attr, std::span<const double* const> scalars,
                                               std::optional<std::string_view> algorithm) {
  return pointwise({"mkldnn__convolution_transpose_pointwise", stride, padding, dilation, output_padding, true, groups},
                   X, W, B, attr, scalars, algorithm);
}

// activation(convolution BINARY other); other broadcasts.
Tensor mkldnn__convolution_pointwise_binary(const Tensor& X, const Tensor& other, const Tensor& W, const Tensor* B,
                                            IntSpan padding, IntSpan stride, IntSpan dilation, int64_t groups,
                                            std::string_view binary_attr, std::optional<double> alpha,
                                            std::optional<std::string_view> unary_attr,
                                            std::span<const double* const> unary_scalars,
                                            std::optional<std::string_view> unary_algorithm) {
  constexpr std::string_view kName = "mkldnn__convolution_pointwise_binary";
  Prepared p;
  fuse_binary(p, kName, X, other, binary_attr, alpha, unary_attr, unary_scalars, unary_algorithm);
  prepare(p, {kName, stride, padding, dilation, {}, false, groups}, X, W, B);
  p.operands.other = fusion_view(kName, p.shape, other);
  Tensor output = convolution_output(p.shape, X.dtype(), p.channels_last);
  convolve(p.shape, p.operands, output);
  return output;
}

// other = activation(other + convolution), in place; returns it. other may be X.
Tensor mkldnn__convolution_pointwise_binary_(const Tensor& other, const Tensor& X, const Tensor& W, const Tensor* B,
                                             IntSpan padding, IntSpan stride, IntSpan dilation, int64_t groups,
                                             std::string_view binary_attr, std::optional<double> alpha,
                                             std::optional<std::string_view> unary_attr,
                                             std::span<const double* const> unary_scalars,
                                             std::optional<std::string_view> unary_algorithm) {
  constexpr std::string_view kName = "mkldnn__convolution_pointwise_binary_";
  SCONCE_CHECK(binary_attr == "add", kInvalidArgument, kName, ": only add can be done in place, not '", binary_attr,
               "'");
  Prepared p;
  fuse_binary(p, kName, X, other, binary_attr, alpha, unary_attr, unary_scalars, unary_algorithm);
  prepare(p, {kName, stride, padding, dilation, {}, false, groups}, X, W, B);
  std::vector<int64_t> sizes{p.shape.batch, p.shape.out_channels};
  for (int d = 3 - p.shape.spatial; d < 3; ++d) sizes.push_back(p.shape.output[static_cast<size_t>(d)]);
  SCONCE_CHECK(std::equal(sizes.begin(), sizes.end(), other.sizes().begin(), other.sizes().end()), kInvalidArgument,
               kName, ": other of size ", to_string(other.sizes()), " is not of the output's ", to_string(sizes));
  Tensor output = other;
  // A convolution writes its result while it still reads its input.
  Tensor input;
  if (share_memory(*X.storage(), *other.storage())) {
    input = clone(X);
    p.operands.input = activation_view(input);
  }
  p.operands.other = activation_view(other);
  convolve(p.shape, p.operands, output);
  return output;
}

}  // namespace cpu
}  // namespace sconce
