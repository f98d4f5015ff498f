#include "src/cpu/layers/wrapped_linear.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "sconce/check.h"
#include "sconce/float_types.h"
#include "src/cpu/layers/qlinear.h"
#include "src/cpu/matmul/gemm/gemm.h"
#include "src/cpu/onednn/mkldnn_weight.h"
#include "src/cpu/vector/channel_values.h"
#include "src/device/tensor_form.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/convert.h"

namespace sconce {
namespace {

enum class Kind : int64_t { kInt8 = 0x38494E4C, kHalf = 0x36314E4C };

// Elements follow at kElements: int8 [K, N] or float16 [N, K].
struct Header {
  Kind kind;
  int64_t k, n;
  double scale;
  int64_t zero_point;
  int64_t bias_offset;  // float32 [N]; 0: none
};
constexpr int64_t kElements = 64;
static_assert(sizeof(Header) <= kElements);

Tensor make(const Header& header, int64_t bytes) {
  Tensor packed = Tensor::empty({&bytes, 1}, DType::kUInt8);
  std::memset(packed.data(), 0, static_cast<size_t>(bytes));
  std::memcpy(packed.data(), &header, sizeof header);
  return packed;
}

Header header_of(const char* name, const Tensor& packed, Kind kind, int64_t element_bytes, int64_t out_channel) {
  Header h{};
  const bool whole = packed.dtype() == DType::kUInt8 && packed.is_contiguous() && packed.numel() >= kElements;
  if (whole) std::memcpy(&h, packed.data(), sizeof h);
  int64_t bytes = 0;
  SCONCE_CHECK(whole && h.kind == kind && h.k >= 0 && h.n >= 0 && !__builtin_mul_overflow(h.k, h.n, &bytes) &&
                   !__builtin_mul_overflow(bytes, element_bytes, &bytes) && bytes <= packed.numel() - kElements &&
                   (h.bias_offset == 0 ||
                    (h.bias_offset >= kElements && h.n <= (packed.numel() - h.bias_offset) / int64_t{sizeof(float)})),
               kInvalidArgument, name, ": the weight was not packed by this build: ", describe(packed));
  SCONCE_CHECK(h.n == out_channel, kInvalidArgument, name, ": the weight was packed with ", h.n,
               " output channels, not ", out_channel);
  return h;
}

const Tensor& check_weight(const char* name, const Tensor& weight) {
  SCONCE_CHECK(weight.dim() == 2 && weight.dtype() == DType::kFloat32, kInvalidArgument, name,
               ": Quantize only works on Float Tensor, a weight must be a float32 matrix, got ", describe(weight));
  return weight;
}

std::vector<int64_t> output_sizes(const char* name, const Tensor& input, int64_t k, int64_t n) {
  SCONCE_CHECK(input.dtype() == DType::kFloat32, kInvalidArgument, name, ": expected scalar type Float but found ",
               dtype_name(input.dtype()));
  SCONCE_CHECK(input.dim() >= 1 && input.size(input.dim() - 1) == k, kInvalidArgument, name, ": input of size ",
               to_string(input.sizes()), " does not fit a weight of ", k, " columns");
  std::vector<int64_t> sizes(input.sizes().begin(), input.sizes().end());
  sizes.back() = n;
  return sizes;
}

// Quantise by the inverse of the scale, as PyTorch does.
template <class T>
void quantise(const float* from, T* to, int64_t n, double scale, int64_t zero_point) {
  constexpr float kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  const float inverse = 1.0f / static_cast<float>(scale);
  const auto zero = static_cast<float>(zero_point);
  for (int64_t i = 0; i < n; ++i)
    to[i] = static_cast<T>(std::clamp(std::nearbyint(from[i] * inverse) + zero, kLow, kHigh));
}

// float32 elements of a packed weight: made once where it is a constant, else in `own`. fill(weight, to) refers to
// nothing else.
template <class Fill>
const float* floats_of(const Tensor& weight, const void* kind, int64_t count, Tensor& own, const Fill& fill) {
  Storage& storage = *weight.storage();
  if (!storage.immutable()) {
    own = Tensor::empty({&count, 1}, DType::kFloat32);
    fill(weight, own.data_as<float>());
    return own.data_as<float>();
  }
  const auto how = [&]() -> Storage::Derive {
    return [form = TensorForm(weight), count, fill](Storage& from) -> Storage::Value {
      auto made = std::make_shared_for_overwrite<float[]>(static_cast<size_t>(count));
      fill(form.over(from), made.get());
      return {std::move(made), static_cast<size_t>(count) * sizeof(float)};
    };
  };
  return static_cast<const float*>(storage.derived({kind, {weight.storage_offset(), count}}, std::ref(how)));
}

// input [..., K] times weight [K, N], plus bias [N].
Tensor product(const char* name, const Tensor& input, const MatrixView& weight, int64_t n, int64_t k,
               const Tensor* bias) {
  Tensor output = Tensor::empty(output_sizes(name, input, k, n), DType::kFloat32);
  if (output.numel() == 0) return output;
  const Tensor x = contiguous(input);
  Tensor add;
  MatrixProduct p{};
  p.dtype = DType::kFloat32;
  p.m = output.numel() / n;
  p.n = n;
  p.k = k;
  p.a = {x.data(), 0, k, 1};
  p.b = weight;
  p.c = output.data();
  p.c_row_stride = n;
  p.c_column_stride = 1;
  if (bias) {
    SCONCE_CHECK(bias->numel() == n, kInvalidArgument, name, ": bias should have ", n, " elements, got ",
                 describe(*bias));
    add = contiguous(to_dtype(*bias, DType::kFloat32));
    p.self = {add.data(), 0, 0, 1};
  }
  matrix_product(name, p);
  return output;
}

}  // namespace

namespace cpu {

// weight float32 [N, K] to int8 with one scale and zero point; bias [N]. Scale and zero point have one element.
Tensor _wrapped_linear_prepack(const Tensor& weight, const Tensor& weight_scale, const Tensor& weight_zero_point,
                               const Tensor& bias) {
  constexpr const char* kName = "_wrapped_linear_prepack";
  const Tensor w = contiguous(check_weight(kName, weight));
  const int64_t n = w.size(0), k = w.size(1);
  SCONCE_CHECK(bias.numel() == n, kInvalidArgument, kName, ": bias should have N elements: ", n, ", got ",
               describe(bias));
  const int64_t bias_offset = (kElements + n * k + 63) / 64 * 64;
  const Header h{Kind::kInt8,
                 k,
                 n,
                 single_value(kName, weight_scale, "weight_scale", 1),
                 static_cast<int64_t>(single_value(kName, weight_zero_point, "weight_zero_point", 0)),
                 bias_offset};
  Tensor packed = make(h, bias_offset + n * static_cast<int64_t>(sizeof(float)));
  auto* bytes = packed.data_as<int8_t>();
  std::vector<int8_t> row(static_cast<size_t>(k));
  for (int64_t j = 0; j < n; ++j) {
    quantise(w.data_as<float>() + j * k, row.data(), k, h.scale, h.zero_point);
    for (int64_t i = 0; i < k; ++i) bytes[kElements + i * n + j] = row[static_cast<size_t>(i)];
  }
  const Tensor values = contiguous(to_dtype(bias, DType::kFloat32));
  if (n > 0) std::memcpy(bytes + bias_offset, values.data(), static_cast<size_t>(n) * sizeof(float));
  return packed;
}

// input float32 [..., K], quantised to uint8, times the packed weight, quantised to uint8 and back: float32
// [..., out_channel]. kInvalidArgument for what does not fit.
Tensor _wrapped_quantized_linear_prepacked(const Tensor& input, const Tensor& input_scale,
                                           const Tensor& input_zero_point, const Tensor& weight,
                                           const Tensor& out_scale, const Tensor& out_zeropoint, int64_t out_channel) {
  constexpr const char* kName = "_wrapped_quantized_linear_prepacked";
  const Header h = header_of(kName, weight, Kind::kInt8, 1, out_channel);
  const std::vector<int64_t> sizes = output_sizes(kName, input, h.k, h.n);
  const Tensor x = contiguous(input);
  Tensor bytes = Tensor::empty(x.sizes(), DType::kUInt8);
  quantise(x.data_as<float>(), bytes.data_as<uint8_t>(), x.numel(), single_value(kName, input_scale, "input_scale", 1),
           static_cast<int64_t>(single_value(kName, input_zero_point, "input_zero_point", 0)));
  const int64_t matrix[2] = {h.k, h.n}, matrix_strides[2] = {h.n, 1};
  const Tensor values = weight.view_as(DType::kInt8, matrix, matrix_strides, weight.storage_offset() + kElements);
  float scale = static_cast<float>(h.scale);
  const int64_t one = 1;
  const Tensor scales = Tensor::from_blob(&scale, {&one, 1}, {&one, 1}, DType::kFloat32);
  int64_t zero = h.zero_point;
  const Tensor zeros = Tensor::from_blob(&zero, {&one, 1}, {&one, 1}, DType::kInt64);
  const Tensor bias =
      Tensor::from_blob(static_cast<std::byte*>(weight.data()) + h.bias_offset, {&h.n, 1}, {&one, 1}, DType::kFloat32);
  const double to_scale = single_value(kName, out_scale, "out_scale", 1);
  const auto to_zero = static_cast<int64_t>(single_value(kName, out_zeropoint, "out_zeropoint", 0));
  const Tensor result =
      fbgemm_linear(bytes, input_scale, input_zero_point, values, scales, zeros, bias, to_scale, to_zero);
  Tensor output = Tensor::empty(sizes, DType::kFloat32);
  const auto step = static_cast<float>(to_scale);
  for (int64_t i = 0; i < output.numel(); ++i)
    output.data_as<float>()[i] = static_cast<float>(result.data_as<uint8_t>()[i] - to_zero) * step;
  return output;
}

// weight float32 [N, K] to float16; what is too large for it becomes its largest number.
Tensor wrapped_fbgemm_pack_gemm_matrix_fp16(const Tensor& weight) {
  const Tensor w = contiguous(check_weight("wrapped_fbgemm_pack_gemm_matrix_fp16", weight));
  const int64_t n = w.size(0), k = w.size(1);
  Tensor packed = make({Kind::kHalf, k, n, 1, 0, 0}, kElements + n * k * 2);
  auto* to = reinterpret_cast<Half*>(packed.data_as<std::byte>() + kElements);
  for (int64_t i = 0; i < n * k; ++i) {
    const float v = w.data_as<float>()[i];
    to[i] = Half(v > 65504.0f ? 65504.0f : v < -65504.0f ? -65504.0f : v);
  }
  return packed;
}

// input float32 [..., K], bias [N] or null: float32 [..., out_channel].
Tensor wrapped_fbgemm_linear_fp16_weight(const Tensor& input, const Tensor& weight, const Tensor* bias,
                                         int64_t out_channel) {
  constexpr const char* kName = "wrapped_fbgemm_linear_fp16_weight";
  static const char kind = 0;
  const Header h = header_of(kName, weight, Kind::kHalf, 2, out_channel);
  Tensor own;
  const int64_t count = h.n * h.k;
  const float* const wide = floats_of(weight, &kind, count, own, [count](const Tensor& packed, float* to) {
    half_to_float(reinterpret_cast<const Half*>(packed.data_as<std::byte>() + kElements), to, count);
  });
  return product(kName, input, {wide, 0, 1, h.k}, h.n, h.k, bias);
}

Tensor linear_dynamic_fp16(const Tensor& x, const Tensor& w, const Tensor* bias, bool relu) {
  constexpr const char* kName = "linear_dynamic_fp16";
  static const char kind = 0;
  SCONCE_CHECK(w.layout() == Layout::kMkldnn, kInvalidArgument, kName, ": expected a weight packed by oneDNN, got ",
               describe(w));
  BlockedWeight parsed;
  const BlockedWeight& blocked = blocked_weight(w, parsed);
  SCONCE_CHECK(blocked.dtype == DType::kFloat16 && blocked.dims.size() == 2, kInvalidArgument, kName,
               ": expected a packed matrix of float16, got ", dtype_name(blocked.dtype), ' ', to_string(blocked.dims));
  const int64_t k = blocked.dims[0], n = blocked.dims[1];
  Tensor own;
  const float* const wide = floats_of(w, &kind, n * k, own, [](const Tensor& packed, float* to) {
    BlockedWeight parsed;
    blocked_weight(packed, parsed).to_floats(packed.storage()->data(), to);
  });
  Tensor output = product(kName, x, {wide, 0, n, 1}, n, k, bias);
  if (relu) {
    float* const values = output.data_as<float>();
    for (int64_t i = 0; i < output.numel(); ++i) values[i] = values[i] < 0 ? 0.f : values[i];
  }
  return output;
}

}  // namespace cpu
}  // namespace sconce
