#include "src/ops/qlinear.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "sconce/check.h"
#include "src/device/threads.h"
#include "src/ops/convolution_fusion.h"
#include "src/ops/copy.h"
#include "src/ops/gemm_integer.h"
#include "src/ops/inspection.h"
#include "src/ops/mkldnn_weight.h"

namespace sconce {
namespace {

constexpr std::string_view kName = "_qlinear_pointwise";

// The weight row-major with the sums of its columns, which correct for the input's zero point.
struct PlainWeight {
  int64_t k = 0, n = 0;
  std::vector<int8_t> values;        // [K, N]
  std::vector<int64_t> column_sums;  // [N]
};
constexpr char kPlainWeight = 0;

PlainWeight unpack(const Tensor& weight) {
  PlainWeight plain;
  if (weight.layout() == Layout::kMkldnn) {
    BlockedWeight own;
    const BlockedWeight& blocked = blocked_weight(weight, own);
    SCONCE_CHECK(blocked.dtype == DType::kInt8 && blocked.dims.size() == 2, kUnsupported, kName,
                 ": the packed weight must be an int8 matrix");
    plain.k = blocked.dims[0];
    plain.n = blocked.dims[1];
    plain.values.resize(static_cast<size_t>(plain.k * plain.n));
    const auto* data = static_cast<const int8_t*>(weight.storage()->data()) + blocked.first;
    for (int64_t i = 0; i < plain.k; ++i)
      for (int64_t j = 0; j < plain.n; ++j)
        plain.values[static_cast<size_t>(i * plain.n + j)] =
            data[blocked.at[0][static_cast<size_t>(i)] + blocked.at[1][static_cast<size_t>(j)]];
  } else {
    SCONCE_CHECK(weight.dtype() == DType::kInt8 && weight.dim() == 2, kInvalidArgument, kName,
                 ": weight must be an int8 matrix, got ", describe(weight));
    plain.k = weight.size(0);
    plain.n = weight.size(1);
    const Tensor rows = contiguous(weight);
    const auto* data = rows.data_as<int8_t>();
    plain.values.assign(data, data + plain.k * plain.n);
  }
  plain.column_sums.assign(static_cast<size_t>(plain.n), 0);
  for (int64_t i = 0; i < plain.k; ++i)
    for (int64_t j = 0; j < plain.n; ++j)
      plain.column_sums[static_cast<size_t>(j)] += plain.values[static_cast<size_t>(i * plain.n + j)];
  return plain;
}

const PlainWeight& plain_weight(const Tensor& weight, PlainWeight& own) {
  if (!weight.storage()->immutable()) return own = unpack(weight);
  return *static_cast<const PlainWeight*>(weight.storage()->derived(
      {&kPlainWeight, {weight.storage_offset()}}, [&] { return std::make_shared<PlainWeight>(unpack(weight)); }));
}

double number(const Tensor& tensor, int64_t i) {
  const ScalarValue v = load_scalar(
      static_cast<const std::byte*>(tensor.data()) + i * static_cast<int64_t>(tensor.itemsize()), tensor.dtype());
  return v.kind == ScalarValue::Kind::kReal ? v.real : static_cast<double>(v.i) + static_cast<double>(v.u);
}

// [N] or [1], as N numbers.
std::vector<double> per_channel(const Tensor& tensor, int64_t n, const char* what) {
  SCONCE_CHECK(tensor.defined() && (tensor.numel() == n || tensor.numel() == 1), kInvalidArgument, kName, ": ", what,
               " must have 1 or ", n, " values, got ", describe(tensor));
  const Tensor values = contiguous(tensor);
  std::vector<double> result(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) result[static_cast<size_t>(i)] = number(values, tensor.numel() == 1 ? 0 : i);
  return result;
}

double single(const Tensor& tensor, const char* what, double otherwise) {
  if (!tensor.defined() || tensor.numel() == 0) return otherwise;
  SCONCE_CHECK(tensor.numel() == 1, kInvalidArgument, kName, ": ", what, " must have 1 value, got ", describe(tensor));
  return number(tensor, 0);
}

template <class T>
void quantise(const float* values, T* out, int64_t n, float inverse_scale, float zero_point) {
  constexpr float kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  for (int64_t i = 0; i < n; ++i)
    out[i] = static_cast<T>(std::clamp(std::nearbyint(values[i] * inverse_scale) + zero_point, kLow, kHigh));
}

}  // namespace

namespace cpu {

Tensor _qlinear_pointwise_tensor(const Tensor& X, const Tensor& act_scale, const Tensor& act_zero_point,
                                 const Tensor& onednn_weight, const Tensor& weight_scales,
                                 const Tensor& weight_zero_points, const Tensor* B, double output_scale,
                                 int64_t output_zero_point, std::optional<DType> output_dtype,
                                 std::string_view post_op_name, std::span<const double* const> post_op_args,
                                 std::string_view post_op_algorithm) {
  SCONCE_CHECK(X.dtype() == DType::kUInt8 || X.dtype() == DType::kInt8, kUnsupported, kName, ": not implemented for '",
               dtype_name(X.dtype()), "'");
  const DType out_dtype = output_dtype.value_or(X.dtype());
  const bool requantise = out_dtype == DType::kUInt8 || out_dtype == DType::kInt8;
  SCONCE_CHECK(requantise || out_dtype == DType::kFloat32 || out_dtype == DType::kBFloat16, kUnsupported, kName,
               ": results of ", dtype_name(out_dtype), " are not supported");
  PlainWeight own;
  const PlainWeight& weight = plain_weight(onednn_weight, own);
  const int64_t k = weight.k, n = weight.n;
  SCONCE_CHECK(X.dim() >= 1 && X.size(X.dim() - 1) == k, kInvalidArgument, kName, ": input of size ",
               to_string(X.sizes()), " does not fit a weight of ", k, " rows");
  SCONCE_CHECK(!B || B->numel() == n, kInvalidArgument, kName, ": bias must have ", n, " values, got ",
               B ? describe(*B) : "");
  Fusion fusion;
  parse_activation(kName, post_op_name, post_op_args, post_op_algorithm, fusion);

  std::vector<int64_t> sizes(X.sizes().begin(), X.sizes().end());
  sizes.back() = n;
  Tensor output = Tensor::empty(sizes, out_dtype);
  if (output.numel() == 0) return output;
  const int64_t m = output.numel() / n;
  const Tensor input = contiguous(X);
  const int64_t accumulator_sizes[2] = {m, n};
  Tensor accumulator = Tensor::empty(accumulator_sizes, DType::kInt32);
  MatrixProduct product{};
  product.dtype = X.dtype();
  product.m = m;
  product.n = n;
  product.k = k;
  product.a = {input.data(), 0, k, 1};
  product.b = {weight.values.data(), 0, n, 1};
  product.c = accumulator.data();
  product.c_row_stride = n;
  product.c_column_stride = 1;
  int8_matrix_product(X.dtype() == DType::kInt8, product);

  const double x_scale = single(act_scale, "act_scale", 1);
  const auto x_zero = static_cast<int64_t>(single(act_zero_point, "act_zero_point", 0));
  const std::vector<double> w_scale = per_channel(weight_scales, n, "weight_scales");
  const std::vector<double> w_zero = weight_zero_points.defined() && weight_zero_points.numel() > 0
                                         ? per_channel(weight_zero_points, n, "weight_zero_points")
                                         : std::vector<double>(static_cast<size_t>(n), 0);
  const bool asymmetric = std::any_of(w_zero.begin(), w_zero.end(), [](double z) { return z != 0; });
  const std::vector<double> bias = B ? per_channel(*B, n, "bias") : std::vector<double>(static_cast<size_t>(n), 0);
  const auto inverse = static_cast<float>(1.0 / output_scale);
  parallel_for(0, m, std::max<int64_t>(1, 16384 / n), [&](int64_t begin, int64_t end) noexcept {
    float row[256];
    for (int64_t i = begin; i < end; ++i) {
      const int32_t* sums = accumulator.data_as<int32_t>() + i * n;
      int64_t row_sum = 0;
      if (asymmetric)
        for (int64_t j = 0; j < k; ++j)
          row_sum += X.dtype() == DType::kInt8 ? input.data_as<int8_t>()[i * k + j]
                                               : static_cast<int64_t>(input.data_as<uint8_t>()[i * k + j]);
      for (int64_t from = 0; from < n; from += 256) {
        const int64_t count = std::min<int64_t>(256, n - from);
        for (int64_t j = 0; j < count; ++j) {
          const auto c = static_cast<size_t>(from + j);
          const auto zero = static_cast<int64_t>(w_zero[c]);
          const int64_t sum = sums[from + j] - x_zero * weight.column_sums[c] - zero * row_sum + x_zero * zero * k;
          row[j] = static_cast<float>(static_cast<double>(sum) * x_scale * w_scale[c] + bias[c]);
        }
        apply_fusion(fusion, row, nullptr, count);
        const int64_t at = i * n + from;
        switch (out_dtype) {
          case DType::kUInt8:
            quantise(row, output.data_as<uint8_t>() + at, count, inverse, static_cast<float>(output_zero_point));
            break;
          case DType::kInt8:
            quantise(row, output.data_as<int8_t>() + at, count, inverse, static_cast<float>(output_zero_point));
            break;
          default:
            scatter_floats(row, out_dtype,
                           static_cast<std::byte*>(output.data()) + at * static_cast<int64_t>(output.itemsize()), 1,
                           count);
        }
      }
    }
  });
  return output;
}

}  // namespace cpu
}  // namespace sconce
