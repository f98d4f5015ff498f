// The quantised linear layer of fbgemm.
#include "src/cpu/layers/qlinear.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "sconce/check.h"
#include "src/cpu/layers/quantised.h"
#include "src/cpu/matmul/gemm/gemm_integer.h"
#include "src/cpu/onednn/mkldnn_weight.h"
#include "src/cpu/vector/channel_values.h"
#include "src/device/tensor_form.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"

namespace sconce {
namespace {

constexpr std::string_view kName = "onednn qlinear";

// Of either kind of weight: [K, N].
struct WeightForm {
  const BlockedWeight* blocked = nullptr;  // where it is packed
  int64_t k = 0, n = 0;
  float scale_adjust = 1;  // the values have been multiplied by this
};

WeightForm weight_form(const Tensor& weight, BlockedWeight& own) {
  if (weight.layout() == Layout::kMkldnn) {
    const BlockedWeight& blocked = blocked_weight(weight, own);
    SCONCE_CHECK(blocked.dtype == DType::kInt8 && blocked.dims.size() == 2, kUnsupported, kName,
                 ": the packed weight must be an int8 matrix");
    return {&blocked, blocked.dims[0], blocked.dims[1], blocked.scale_adjust};
  }
  SCONCE_CHECK(weight.dtype() == DType::kInt8 && weight.dim() == 2, kInvalidArgument, kName,
               ": weight must be an int8 matrix, got ", describe(weight));
  return {nullptr, weight.size(0), weight.size(1), 1};
}

// The weight row-major with the sums of its columns, which correct for the input's zero point. Sums wrap.
struct PlainWeight {
  int64_t k = 0, n = 0;
  std::vector<int8_t> values;         // [K, N]
  std::vector<uint32_t> column_sums;  // [N]
  float scale_adjust = 1;             // the values have been multiplied by this
};
constexpr char kPlainWeight = 0;

PlainWeight unpack(const Tensor& weight) {
  BlockedWeight own;
  const WeightForm form = weight_form(weight, own);
  PlainWeight plain;
  plain.k = form.k;
  plain.n = form.n;
  plain.scale_adjust = form.scale_adjust;
  if (form.blocked) {
    plain.values.resize(static_cast<size_t>(plain.k * plain.n));
    form.blocked->to_bytes(weight.storage()->data(), plain.values.data());
  } else {
    const Tensor rows = contiguous(weight);
    const auto* data = rows.data_as<int8_t>();
    plain.values.assign(data, data + plain.k * plain.n);
  }
  plain.column_sums.assign(static_cast<size_t>(plain.n), 0);
  for (int64_t i = 0; i < plain.k; ++i)
    for (int64_t j = 0; j < plain.n; ++j)
      plain.column_sums[static_cast<size_t>(j)] +=
          static_cast<uint32_t>(int32_t{plain.values[static_cast<size_t>(i * plain.n + j)]});
  return plain;
}

const PlainWeight& plain_weight(const Tensor& weight, PlainWeight& own) {
  if (!weight.storage()->immutable()) return own = unpack(weight);
  const auto how = [&]() -> Storage::Derive {
    return [form = TensorForm(weight)](Storage& from) -> Storage::Value {
      auto plain = std::make_shared<PlainWeight>(unpack(form.over(from)));
      const size_t bytes = plain->values.size() + plain->column_sums.size() * sizeof(uint32_t);
      return {std::move(plain), bytes};
    };
  };
  return *static_cast<const PlainWeight*>(
      weight.storage()->derived({&kPlainWeight, {weight.storage_offset()}}, std::ref(how)));
}

// sums = (x - x_zero) @ (w - w_zero), int32 [m, n]; zeros: [n] or undefined.
void integer_sums(const Tensor& x, int64_t x_zero, const PlainWeight& w, const Tensor& zeros, int64_t m, Tensor& sums) {
  const bool is_signed = x.dtype() == DType::kInt8;
  const int64_t k = w.k, n = w.n;
  MatrixProduct product{};
  product.dtype = x.dtype();
  product.m = m;
  product.n = n;
  product.k = k;
  product.a = {x.data(), 0, k, 1};
  product.b = {w.values.data(), 0, n, 1};
  product.c = sums.data();
  product.c_row_stride = n;
  product.c_column_stride = 1;
  int8_matrix_product(is_signed, product);
  const float* const zero = zeros.defined() ? zeros.data_as<float>() : nullptr;
  const bool asymmetric = zero && std::any_of(zero, zero + n, [](float z) { return z != 0; });
  if (x_zero == 0 && !asymmetric) return;
  auto* sum = sums.data_as<uint32_t>();
  const auto offset = static_cast<uint32_t>(x_zero);
  for (int64_t i = 0; i < m; ++i, sum += n) {
    for (int64_t j = 0; j < n; ++j) sum[j] -= offset * w.column_sums[static_cast<size_t>(j)];
    if (!asymmetric) continue;
    uint32_t row = 0;
    for (int64_t j = 0; j < k; ++j)
      row += static_cast<uint32_t>(is_signed ? int32_t{x.data_as<int8_t>()[i * k + j]}
                                             : int32_t{x.data_as<uint8_t>()[i * k + j]});
    row -= offset * static_cast<uint32_t>(k);
    for (int64_t j = 0; j < n; ++j) sum[j] -= static_cast<uint32_t>(static_cast<int32_t>(zero[j])) * row;
  }
}

// Rows of uint8 as the pixels of a convolution.
void convolve_rows(const Tensor& x, int32_t x_zero, const Tensor& weight, const WeightForm& form, int64_t m,
                   const ByteFinish* finish, Tensor& output) {
  ConvolutionShape shape;
  shape.spatial = 2;
  shape.batch = 1;
  shape.in_channels = form.k;
  shape.out_channels = form.n;
  shape.input = shape.output = {1, m, 1};
  ConvolutionOperands operands;
  operands.input = {x.data(), DType::kUInt8, m * form.k, 1, {m * form.k, form.k, form.k}};
  operands.weight.blocked = form.blocked;
  operands.weight.data = form.blocked ? weight.storage()->data() : weight.data();
  operands.weight.dtype = DType::kInt8;
  operands.weight.in = form.blocked ? form.n : weight.stride(0);
  operands.weight.out = form.blocked ? 1 : weight.stride(1);
  if (weight.storage()->immutable()) operands.constant = weight.storage().get();
  convolve_bytes(shape, operands, x_zero, finish, output);
}

Tensor float_sums(const Tensor& x, const Tensor& weight, int64_t m, int64_t k, int64_t n) {
  const Tensor a = to_dtype(x, DType::kFloat32);
  Tensor b = contiguous(to_dtype(weight, DType::kFloat32));
  const int64_t sizes[2] = {m, n};
  Tensor sums = Tensor::empty(sizes, DType::kFloat32);
  MatrixProduct product{};
  product.dtype = DType::kFloat32;
  product.m = m;
  product.n = n;
  product.k = k;
  product.a = {a.data(), 0, k, 1};
  product.b = {b.data(), 0, n, 1};
  product.c = sums.data();
  product.c_row_stride = n;
  product.c_column_stride = 1;
  matrix_product("onednn qlinear", product);
  return sums;
}

struct Quantised {
  const Tensor &x, &x_scale, &x_zero_point, &weight, &scales;
  const Tensor* zero_points;  // of the weight, or null
  const Tensor* bias;
};

Tensor qlinear(const Quantised& q, QuantisedResult& result, std::optional<DType> output_dtype) {
  const Tensor& X = q.x;
  const bool small_float = X.dtype() == DType::kFloat8E4M3FN;
  SCONCE_CHECK(small_float || X.dtype() == DType::kUInt8 || X.dtype() == DType::kInt8, kUnsupported, kName,
               ": not implemented for '", dtype_name(X.dtype()), "'");
  const DType out_dtype = output_dtype.value_or(X.dtype());
  result.quantised = out_dtype == DType::kUInt8 || out_dtype == DType::kInt8;
  SCONCE_CHECK(result.quantised || out_dtype == DType::kFloat32 || out_dtype == DType::kBFloat16 ||
                   out_dtype == DType::kFloat16 || (small_float && out_dtype == DType::kFloat8E4M3FN),
               kUnsupported, kName, ": results of ", dtype_name(out_dtype), " are not supported");
  if (!result.quantised && !small_float) result.output_scale = 1;
  // Weights with zero points and signed inputs: a product, and passes over its sums.
  const bool by_rows = X.dtype() == DType::kUInt8 && !q.zero_points;
  BlockedWeight own_blocked;
  WeightForm form;
  PlainWeight own;
  const PlainWeight* weight = nullptr;
  int64_t k, n;
  float scale_adjust = 1;
  if (small_float) {
    SCONCE_CHECK(q.weight.layout() == Layout::kStrided && q.weight.dtype() == X.dtype() && q.weight.dim() == 2,
                 kInvalidArgument, kName, ": weight must be a matrix of ", dtype_name(X.dtype()), ", got ",
                 describe(q.weight));
    k = q.weight.size(0);
    n = q.weight.size(1);
  } else if (by_rows) {
    form = weight_form(q.weight, own_blocked);
    k = form.k;
    n = form.n;
    scale_adjust = form.scale_adjust;
  } else {
    weight = &plain_weight(q.weight, own);
    k = weight->k;
    n = weight->n;
    scale_adjust = weight->scale_adjust;
  }
  SCONCE_CHECK(X.dim() >= 1 && X.size(X.dim() - 1) == k, kInvalidArgument, kName, ": input of size ",
               to_string(X.sizes()), " does not fit a weight of ", k, " rows");
  SCONCE_CHECK(!q.bias || q.bias->numel() == n, kInvalidArgument, kName, ": bias must have ", n, " values, got ",
               q.bias ? describe(*q.bias) : "");
  std::vector<int64_t> sizes(X.sizes().begin(), X.sizes().end());
  sizes.back() = n;

  QuantisedOther& other = result.other;
  Tensor output;
  if (other.how == QuantisedOther::How::kSum) {
    SCONCE_CHECK(other.tensor.dtype() == out_dtype, kInvalidArgument, kName,
                 ": the dtype of extra input for binary post op should be ", dtype_name(out_dtype),
                 " (same as output dtype), but got ", dtype_name(other.tensor.dtype()));
    SCONCE_CHECK(std::ranges::equal(other.tensor.sizes(), sizes) && other.tensor.is_contiguous(), kInvalidArgument,
                 kName, ": the extra input must be contiguous and of size ", to_string(sizes), ", got ",
                 describe(other.tensor));
    output = other.tensor;
  } else {
    output = Tensor::empty(sizes, out_dtype);
  }
  if (other.how != QuantisedOther::How::kNone) check_sum(kName, other, out_dtype);
  if (other.how == QuantisedOther::How::kAdd) {
    SCONCE_CHECK(other.tensor.numel() == output.numel(), kInvalidArgument, kName, ": the extra input of size ",
                 to_string(other.tensor.sizes()), " does not fit output of size ", to_string(sizes));
    other.tensor = contiguous(other.tensor);
    other.scale = 1;  // as it is: PyTorch leaves out scale and zero point of what is added but not written
    other.zero_point = 0;
  }
  if (output.numel() == 0) return output;
  const int64_t m = output.numel() / n;
  const Tensor input = contiguous(X);
  const auto x_scale = static_cast<float>(single_value(kName, q.x_scale, "act_scale", 1)) / scale_adjust;
  const Tensor scales = channel_values(kName, q.scales, n, "weight_scales");
  result.scale = Tensor::empty({&n, 1}, DType::kFloat32);
  for (int64_t j = 0; j < n; ++j) result.scale.data_as<float>()[j] = x_scale * scales.data_as<float>()[j];
  if (q.bias) result.bias = channel_values(kName, *q.bias, n, "bias");
  const auto x_zero = static_cast<int64_t>(single_value(kName, q.x_zero_point, "act_zero_point", 0));
  const int64_t sum_sizes[2] = {m, n};
  Tensor sums;
  if (small_float) {
    sums = float_sums(input, q.weight, m, k, n);
  } else if (by_rows) {
    const auto finish = byte_finish(result, out_dtype);
    if (!finish) sums = Tensor::empty(sum_sizes, DType::kInt32);
    convolve_rows(input, static_cast<int32_t>(x_zero), q.weight, form, m, finish ? &*finish : nullptr,
                  finish ? output : sums);
    if (finish) return output;
  } else {
    sums = Tensor::empty(sum_sizes, DType::kInt32);
    integer_sums(input, x_zero, *weight,
                 q.zero_points ? channel_values(kName, *q.zero_points, n, "weight_zero_points") : Tensor(), m, sums);
  }
  finish_quantised(result, sums, m, n, output);
  return output;
}

void parse_unary(std::string_view post_op, std::span<const double* const> arguments, std::string_view algorithm,
                 Fusion& fusion) {
  SCONCE_CHECK(post_op != "sigmoid" && post_op != "hardsigmoid", kInvalidArgument, kName,
               ": unsupported unary post op ", post_op);
  parse_activation(kName, post_op, arguments, algorithm, fusion);
}

}  // namespace

Tensor fbgemm_linear(const Tensor& x, const Tensor& x_scale, const Tensor& x_zero_point, const Tensor& weight,
                     const Tensor& scale, const Tensor& zero_point, const Tensor& bias, double output_scale,
                     int64_t output_zero_point) {
  QuantisedResult result;
  result.output_scale = output_scale;
  result.output_zero_point = output_zero_point;
  return qlinear({x, x_scale, x_zero_point, weight, scale, &zero_point, &bias}, result, DType::kUInt8);
}

namespace cpu {

Tensor _qlinear_pointwise_tensor(const Tensor& X, const Tensor& act_scale, const Tensor& act_zero_point,
                                 const Tensor& onednn_weight, const Tensor& weight_scales, const Tensor&,
                                 const Tensor* B, double output_scale, int64_t output_zero_point,
                                 std::optional<DType> output_dtype, std::string_view post_op_name,
                                 std::span<const double* const> post_op_args, std::string_view post_op_algorithm) {
  QuantisedResult result;
  result.output_scale = output_scale;
  result.output_zero_point = output_zero_point;
  parse_unary(post_op_name, post_op_args, post_op_algorithm, result.fusion);
  return qlinear({X, act_scale, act_zero_point, onednn_weight, weight_scales, nullptr, B}, result, output_dtype);
}

// binary_post_op "none"; "sum": the result replaces `other`, of its dtype, which is added as (other - other_zero_point)
// * other_scale; "add": other of any of these dtypes, added as it is.
Tensor _qlinear_pointwise_binary_tensor(const Tensor& X, const Tensor& act_scale, const Tensor& act_zero_point,
                                        const Tensor& onednn_weight, const Tensor& weight_scales, const Tensor&,
                                        const Tensor* other, const Tensor* B, double output_scale,
                                        int64_t output_zero_point, std::optional<DType> output_dtype,
                                        double other_scale, int64_t other_zero_point, std::string_view binary_post_op,
                                        double binary_alpha, std::string_view unary_post_op,
                                        std::span<const double* const> unary_post_op_args,
                                        std::string_view unary_post_op_algorithm) {
  using How = QuantisedOther::How;
  QuantisedResult result;
  result.output_scale = output_scale;
  result.output_zero_point = output_zero_point;
  const bool sum = binary_post_op == "sum", add = binary_post_op == "add";
  SCONCE_CHECK(sum || add || binary_post_op == "none", kInvalidArgument, kName, ": unsupported binary post op ",
               binary_post_op);
  if (sum || add) {
    SCONCE_CHECK(other, kInvalidArgument, kName, ": the extra input is missing for post op ", binary_post_op);
    SCONCE_CHECK(binary_alpha == 1, kInvalidArgument, kName, ": alpha != 1 for binary post op is not yet supported.");
    result.other = {sum ? How::kSum : How::kAdd, *other, other_scale, static_cast<double>(other_zero_point)};
  }
  parse_unary(unary_post_op, unary_post_op_args, unary_post_op_algorithm, result.fusion);
  return qlinear({X, act_scale, act_zero_point, onednn_weight, weight_scales, nullptr, B}, result, output_dtype);
}

}  // namespace cpu
}  // namespace sconce
