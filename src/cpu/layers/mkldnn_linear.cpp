// Linear layers with weights that PyTorch packed with oneDNN, and with fused operations; dtypes, attributes and errors
// as in mkldnn_convolution.cpp. Matches mkldnn::_linear_pointwise and its relatives
// (aten/src/ATen/native/mkldnn/Linear.cpp), torch 2.15.
#include <optional>
#include <string_view>
#include <vector>

#include "sconce/check.h"
#include "src/cpu/convolution/convolution.h"
#include "src/cpu/matmul/gemm/onednn_matmul.h"
#include "src/cpu/onednn/mkldnn_weight.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"

namespace sconce {
namespace {

// X [..., K] times W [N, K] transposed, as a convolution of one row of pixels with K channels.
Tensor linear(std::string_view name, const Tensor& X, const Tensor* other, const Tensor& W, const Tensor* B,
              const Fusion& fusion) {
  for (const Tensor* t : {&X, &W, B, other})
    SCONCE_CHECK(!t || (is_floating(t->dtype()) && t->dtype() != DType::kFloat64), kUnsupported, name,
                 ": not implemented for '", dtype_name(t->dtype()), "'");
  BlockedWeight own;
  const BlockedWeight* blocked = W.layout() == Layout::kMkldnn ? &blocked_weight(W, own) : nullptr;
  const IntSpan weight_sizes = blocked ? IntSpan(blocked->dims) : W.sizes();
  SCONCE_CHECK(weight_sizes.size() == 2, kInvalidArgument, name, ": weight of size ", to_string(weight_sizes),
               " is not a matrix");
  const int64_t n = weight_sizes[0], k = weight_sizes[1];
  SCONCE_CHECK(X.dim() >= 1 && X.size(X.dim() - 1) == k, kInvalidArgument, name, ": input of size ",
               to_string(X.sizes()), " does not fit weight of size ", to_string(weight_sizes));
  SCONCE_CHECK(!B || (B->dim() == 1 && B->size(0) == n), kInvalidArgument, name, ": bias of size ",
               B ? to_string(B->sizes()) : "", " is not [", n, "]");

  std::vector<int64_t> sizes(X.sizes().begin(), X.sizes().end());
  sizes.back() = n;
  Tensor output = Tensor::empty(sizes, X.dtype());
  if (output.numel() == 0) return output;
  SCONCE_CHECK(k > 0, kInvalidArgument, name, ": input of size ", to_string(X.sizes()), " has no columns");

  const Tensor input = contiguous(X);
  const int64_t rows = output.numel() / n;
  ConvolutionShape shape;
  shape.spatial = 1;
  shape.batch = 1;
  shape.in_channels = k;
  shape.out_channels = n;
  shape.input = shape.output = {1, 1, rows};
  ConvolutionOperands operands;
  operands.input = {input.data(), input.dtype(), rows * k, 1, {rows * k, rows * k, k}};
  if (blocked) {
    operands.weight = blocked_view(shape, *blocked, W.storage()->data());
  } else {
    operands.weight.data = W.data();
    operands.weight.dtype = W.dtype();
    operands.weight.out = W.stride(0);
    operands.weight.in = W.stride(1);
  }
  operands.bias = B;
  operands.fusion = fusion;
  if (W.storage()->immutable()) operands.constant = W.storage().get();
  Tensor with;
  if (other) {
    SCONCE_CHECK(other->dtype() == X.dtype(), kInvalidArgument, name, ": input type ", dtype_name(X.dtype()),
                 " and other type ", dtype_name(other->dtype()), " should be the same");
    with = contiguous(*other);
    const int64_t columns = with.dim() >= 1 ? with.size(with.dim() - 1) : 1;
    const int64_t with_rows = columns > 0 ? with.numel() / columns : 0;
    SCONCE_CHECK((columns == n || columns == 1) && (with_rows == rows || with_rows == 1), kInvalidArgument, name,
                 ": other of size ", to_string(other->sizes()), " does not fit output of size ", to_string(sizes));
    operands.other = {with.data(), with.dtype(), 0, columns == 1 ? 0 : 1, {0, 0, with_rows == 1 ? 0 : columns}};
  }
  if (onednn::linear_layer({X.dtype(), rows, n, k, input.data(), operands.constant, operands.weight.data,
                            operands.weight.out, operands.weight.in, blocked, B, fusion, other ? with.data() : nullptr,
                            operands.other.pixel[2], operands.other.channel, output.data()}))
    return output;
  const int64_t flat[3] = {1, n, rows}, strides[3] = {rows * n, 1, n};
  Tensor matrix = output.as_strided(flat, strides, 0);
  convolve(shape, operands, matrix);
  return output;
}

}  // namespace

namespace cpu {

// X [..., K], W [N, K]: activation(X W^T + B), contiguous [..., N].
Tensor _linear_pointwise(const Tensor& X, const Tensor& W, const Tensor* B, std::string_view attr,
                         std::span<const double* const> scalars, std::optional<std::string_view> algorithm) {
  Fusion fusion;
  parse_activation("_linear_pointwise", attr, scalars, algorithm, fusion);
  return linear("_linear_pointwise", X, nullptr, W, B, fusion);
}

// (X W^T + B) BINARY other; other has the result's rows and columns, or one of them.
Tensor _linear_pointwise_binary(const Tensor& X, const Tensor& other, const Tensor& W, const Tensor* B,
                                std::string_view attr) {
  Fusion fusion;
  fusion.combination = parse_combination("_linear_pointwise_binary", attr);
  return linear("_linear_pointwise_binary", X, &other, W, B, fusion);
}

// W is origin_W in MKL's own packing, which we cannot read and do not need.
Tensor _mkl_linear(const Tensor& X, const Tensor&, const Tensor& origin_W, const Tensor* B, int64_t) {
  return linear("_mkl_linear", X, nullptr, origin_W, B, {});
}

}  // namespace cpu
}  // namespace sconce
