// Operators of quantised models that Inductor never compiles: quantized_decomposed of PyTorch's exporter, embedding
// bags of bytes, linear layers with half-precision weights. Match torch 2.15 on x86.
#include <cmath>
#include <limits>
#include <vector>

#include "sconce/check.h"
#include "src/cpu/elementwise/arithmetic.h"
#include "src/cpu/elementwise/binary_functions.h"
#include "src/cpu/elementwise/comparisons.h"
#include "src/cpu/elementwise/functions.h"
#include "src/cpu/indexing/byte_embedding.h"
#include "src/cpu/layers/wrapped_linear.h"
#include "src/cpu/reduction/extrema.h"
#include "src/cpu/vector/channel_values.h"
#include "src/custom_ops/aten/aten.h"
#include "src/custom_ops/operator/boxed.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/fill.h"
#include "src/tensor/strided_loop.h"

namespace sconce::custom_ops {
namespace {

struct Range {
  int64_t least, most;
};
Scalar whole(int64_t number) noexcept { return number; }

template <class T>
constexpr Range kRangeOf{std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};

Range range_of(DType dtype) {
  switch (dtype) {
    case DType::kUInt8:
      return kRangeOf<uint8_t>;
    case DType::kInt8:
      return kRangeOf<int8_t>;
    case DType::kUInt16:
      return kRangeOf<uint16_t>;
    case DType::kInt16:
      return kRangeOf<int16_t>;
    case DType::kInt32:
      return kRangeOf<int32_t>;
    case DType::kFloat8E5M2:
      return {-57344, 57344};
    case DType::kFloat8E4M3FN:
      return {-448, 448};
    default:
      SCONCE_FAIL(kUnsupported, "Unsupported dtype: ", dtype_name(dtype));
  }
}

void check_range(int64_t least, int64_t most, DType dtype) {
  const Range range = range_of(dtype);
  SCONCE_CHECK(least >= range.least, kInvalidArgument,
               "quant_min out of bounds for dtype, quant_min_lower_bound: ", range.least, " quant_min: ", least);
  SCONCE_CHECK(most <= range.most, kInvalidArgument,
               "quant_max out of bounds for dtype, quant_max_upper_bound: ", range.most, " quant_max: ", most);
}

Tensor floats(const Tensor& input) {
  const bool half = input.dtype() == DType::kFloat16 || input.dtype() == DType::kBFloat16;
  SCONCE_CHECK(half || input.dtype() == DType::kFloat32, kInvalidArgument,
               "Expecting input to have dtype torch.float32, but got dtype: ", dtype_name(input.dtype()));
  return to_dtype(input, DType::kFloat32);
}

void check_quantised(const Tensor& input, DType dtype) {
  SCONCE_CHECK(input.dtype() == dtype, kInvalidArgument, "Expecting input to have dtype: ", dtype_name(dtype),
               ", but got ", dtype_name(input.dtype()));
}

double one_number(const Tensor& tensor, const char* what) {
  SCONCE_CHECK(tensor.numel() == 1, kInvalidArgument, "Expecting ", what,
               " tensor to be one element, but received : ", tensor.numel());
  return single_value("quantized_decomposed", tensor, what, 0);
}
int64_t one_integer(const Tensor& tensor, const char* what) { return static_cast<int64_t>(one_number(tensor, what)); }

Tensor clamped(const Tensor& values, int64_t least, int64_t most, DType dtype) {
  return to_dtype(cpu::clamp(values, whole(least), whole(most)), dtype);
}

Tensor quantize_per_tensor(const Tensor& input, double scale, int64_t zero_point, int64_t least, int64_t most,
                           DType dtype) {
  check_range(least, most, dtype);
  const Tensor steps = cpu::round(cpu::multiply_number(floats(input), Scalar(1.0 / scale)));
  return clamped(cpu::add_number(steps, whole(zero_point), whole(1)), least, most, dtype);
}
Tensor quantize_by_tensor(const Tensor& input, const Tensor& scale, const Tensor& zero_point, int64_t least,
                          int64_t most, DType dtype) {
  return quantize_per_tensor(input, one_number(scale, "scale"), one_integer(zero_point, "zero_point"), least, most,
                             dtype);
}
Tensor quantize_by_tensors(const Tensor& input, const Tensor& scale, const Tensor& zero_point, const Tensor& least,
                           const Tensor& most, DType dtype) {
  return quantize_by_tensor(input, scale, zero_point, one_integer(least, "quant_min"), one_integer(most, "quant_max"),
                            dtype);
}

Tensor dequantize_per_tensor(const Tensor& input, double scale, int64_t zero_point, int64_t, int64_t, DType dtype,
                             OptType out_dtype) {
  check_quantised(input, dtype);
  (void)range_of(dtype);
  const Tensor wide = to_dtype(input, out_dtype.value_or(DType::kFloat32));
  return cpu::multiply_number(cpu::subtract_number(wide, whole(zero_point), whole(1)), Scalar(scale));
}
Tensor dequantize_by_tensor(const Tensor& input, const Tensor& scale, const Tensor& zero_point, int64_t least,
                            int64_t most, DType dtype, OptType out_dtype) {
  return dequantize_per_tensor(input, one_number(scale, "scale"), one_integer(zero_point, "zero_point"), least, most,
                               dtype, out_dtype);
}
Tensor dequantize_by_tensors(const Tensor& input, const Tensor& scale, const Tensor& zero_point, const Tensor& least,
                             const Tensor& most, DType dtype, OptType out_dtype) {
  return dequantize_by_tensor(input, scale, zero_point, one_integer(least, "quant_min"), one_integer(most, "quant_max"),
                              dtype, out_dtype);
}

// Reshapes values [C] so that they broadcast along `axis`.
Tensor along(const Tensor& values, const Tensor& input, int64_t axis) {
  SCONCE_CHECK(axis < input.dim(), kInvalidArgument, "Expecting axis to be < ", input.dim());
  std::vector<int64_t> sizes(static_cast<size_t>(input.dim()), 1);
  sizes[static_cast<size_t>(wrap_dim("quantized_decomposed", axis, input.dim()))] = values.size(0);
  return cpu::reshape(values, sizes);
}
Tensor inverse(const Tensor& scales) { return cpu::divide(number_tensor(Scalar(1.0)), scales); }

Tensor quantize_per_channel(const Tensor& input, const Tensor& scales, const Tensor& zero_points, int64_t axis,
                            int64_t least, int64_t most, DType dtype) {
  check_range(least, most, dtype);
  const Tensor x = floats(input), zeros = along(zero_points, input, axis);
  const Tensor steps = cpu::round(cpu::multiply(x, inverse(along(scales, input, axis))));
  return clamped(cpu::add(steps, zeros, whole(1)), least, most, dtype);
}
Tensor dequantize_per_channel(const Tensor& input, const Tensor& scales, const Tensor* zero_points, int64_t axis,
                              int64_t least, int64_t most, DType dtype, OptType out_dtype) {
  check_quantised(input, dtype);
  check_range(least, most, dtype);
  const Tensor from = zero_points ? cpu::subtract(input, along(*zero_points, input, axis), whole(1)) : input;
  return to_dtype(cpu::multiply(from, along(scales, input, axis)), out_dtype.value_or(DType::kFloat32));
}

Tensor quantize_per_token(const Tensor& input, const Tensor& scales, const Tensor& zero_points, int64_t least,
                          int64_t most, DType dtype) {
  check_range(least, most, dtype);
  const Tensor steps = cpu::add(cpu::multiply(input, inverse(scales)), zero_points, whole(1));
  return clamped(cpu::round(steps), least, most, dtype);
}
Tensor dequantize_per_token(const Tensor& input, const Tensor& scales, const Tensor& zero_points, int64_t, int64_t,
                            DType, DType output_dtype) {
  return to_dtype(cpu::multiply(cpu::subtract(input, zero_points, whole(1)), scales), output_dtype);
}

// The input with one row per group.
Tensor grouped(const Tensor& input, const Tensor& scales, int64_t group_size) {
  SCONCE_CHECK(group_size > 1, kInvalidArgument, "group_size must be > 1");
  SCONCE_CHECK(input.dim() == 2, kInvalidArgument, "input must be 2-dimensional");
  const int64_t columns = input.size(1);
  if (group_size > columns && scales.size(scales.dim() - 1) == 1) group_size = columns;
  SCONCE_CHECK(columns % group_size == 0, kInvalidArgument, "input.shape[-1] must be divisible by group_size");
  return cpu::reshape(input, std::vector<int64_t>{-1, group_size});
}
Tensor column(const Tensor& values) { return cpu::reshape(values, std::vector<int64_t>{-1, 1}); }

Tensor quantize_per_channel_group(const Tensor& input, const Tensor& scales, const Tensor& zero_points, int64_t least,
                                  int64_t most, DType dtype, int64_t group_size) {
  const Tensor rows = grouped(input, scales, group_size);
  return cpu::reshape(quantize_per_token(rows, column(scales), column(zero_points), least, most, dtype), input.sizes());
}
Tensor dequantize_per_channel_group(const Tensor& input, const Tensor& scales, const Tensor* zero_points, int64_t,
                                    int64_t, DType, int64_t group_size, DType output_dtype) {
  const Tensor rows = grouped(input, scales, group_size);
  const Tensor from = zero_points ? cpu::subtract(rows, column(*zero_points), whole(1)) : rows;
  return to_dtype(cpu::reshape(cpu::multiply(from, column(scales)), input.sizes()), output_dtype);
}

// Always float64 and int64, as these operators declare to the compiler.
std::array<Tensor, 2> as_declared(const Tensor& scale, const Tensor& zero_point) {
  return {to_dtype(scale, DType::kFloat64), to_dtype(zero_point, DType::kInt64)};
}

// One scale and zero point for the range of all elements, extended to contain 0.
std::array<Tensor, 2> choose_one(const Tensor& input, int64_t least, int64_t most, double eps, DType dtype,
                                 bool symmetric) {
  (void)range_of(dtype);
  SCONCE_CHECK(least <= 0 && most >= 0 && least < most, kInvalidArgument,
               "Used-specified quantization range must include 0.");
  const auto [low, high] = cpu::aminmax(input, std::nullopt, false);
  const Tensor zero = number_tensor(whole(0));
  const Tensor down = cpu::minimum(low, to_dtype(zero, low.dtype())),
               up = cpu::maximum(high, to_dtype(zero, low.dtype()));
  const auto smallest = static_cast<float>(eps);
  const int64_t one = 1;
  const Tensor floor = to_dtype(cpu::reshape(number_tensor(Scalar(double{smallest})), {&one, 1}), DType::kFloat32);
  const auto steps = static_cast<double>(most - least);
  if (symmetric) {
    const Tensor reach = cpu::maximum(cpu::neg(down), up);
    const Tensor scale = cpu::maximum(cpu::divide_number(reach, Scalar(steps / 2)), floor);
    const int64_t middle = dtype == DType::kUInt8 ? 128 : 0;
    return as_declared(scale, cpu::reshape(number_tensor(whole(middle)), {&one, 1}));
  }
  const Tensor scale = cpu::maximum(cpu::divide_number(cpu::subtract(up, down, whole(1)), Scalar(steps)), floor);
  const Tensor below = to_dtype(cpu::round(cpu::divide(down, scale)), DType::kInt32);
  const Tensor zero_point = cpu::add_number(cpu::neg(below), whole(least), whole(1));
  return as_declared(scale, cpu::clamp(zero_point, whole(least), whole(most)));
}
std::array<Tensor, 2> choose_qparams(const Tensor& input, int64_t least, int64_t most, double eps, DType dtype) {
  return choose_one(input, least, most, eps, dtype, false);
}
std::array<Tensor, 2> choose_qparams_symmetric(const Tensor& input, int64_t least, int64_t most, double eps,
                                               DType dtype) {
  return choose_one(input, least, most, eps, dtype, true);
}

// One scale and zero point per row.
constexpr int64_t kLast = -1;
std::array<Tensor, 2> choose_qparams_per_token(const Tensor& input, DType dtype) {
  SCONCE_CHECK(dtype == DType::kInt8, kUnsupported,
               "unsupported dtype in choose_qparams_per_token: ", dtype_name(dtype));
  Tensor reach = cpu::amax(cpu::abs(input), {&kLast, 1}, true);
  if (reach.dtype() == DType::kFloat16) reach = to_dtype(reach, DType::kFloat32);
  const Tensor scales = cpu::divide_number(cpu::clamp_min(reach, Scalar(1e-5)), whole(127));
  return as_declared(scales, cpu::multiply_number(to_dtype(scales, DType::kInt64), whole(0)));
}
std::array<Tensor, 2> choose_qparams_per_token_asymmetric(const Tensor& input, DType) {
  constexpr int64_t kLeast = -128, kMost = 127;
  const Scalar zero = whole(0);
  const Tensor down = cpu::clamp_max(cpu::amin(input, {&kLast, 1}, true), zero);
  const Tensor up = cpu::clamp_min(cpu::amax(input, {&kLast, 1}, true), zero);
  constexpr auto kEps = static_cast<double>(std::numeric_limits<float>::epsilon());
  const Tensor range = cpu::subtract(up, down, whole(1));
  const Tensor scale = cpu::clamp_min(cpu::divide_number(range, Scalar(255.0)), Scalar(kEps));
  const Tensor low = cpu::divide(down, scale), high = cpu::divide(up, scale);
  const Tensor error =
      cpu::add(cpu::add_number(low, whole(kLeast), whole(1)), cpu::add_number(high, whole(kMost), whole(1)), whole(1));
  const Tensor zero_point =
      cpu::where(cpu::gt_number(error, zero), cpu::add_number(cpu::neg(low), whole(kLeast), whole(1)),
                 cpu::add_number(cpu::neg(high), whole(kMost), whole(1)));
  return as_declared(scale, cpu::round(cpu::clamp(zero_point, whole(kLeast), whole(kMost))));
}

Tensor linear_half(const Tensor& x, const Tensor& w, const Tensor* bias) {
  return cpu::linear_dynamic_fp16(x, w, bias, false);
}
Tensor linear_half_relu(const Tensor& x, const Tensor& w, const Tensor* bias) {
  return cpu::linear_dynamic_fp16(x, w, bias, true);
}

// Max pooling of bytes. The result is always channels-last, as the operator declares to the compiler.
Tensor max_pool2d_bytes(const Tensor& qx, IntSpan kernel_size, IntSpan stride, IntSpan padding, IntSpan dilation,
                        bool ceil_mode) {
  constexpr int32_t kChannelsLast = 2;
  SCONCE_CHECK(qx.dtype() == DType::kUInt8 && qx.dim() == 4, kUnsupported,
               "quantized::max_pool2d: not implemented but for uint8 [N, C, H, W], got ", describe(qx));
  const Tensor x = cpu::contiguous_in_format(qx, kChannelsLast);
  const auto [pooled, indices] = cpu::max_pool2d_with_indices(x, kernel_size, stride, padding, dilation, ceil_mode);
  const Tensor last = cpu::contiguous_in_format(pooled, kChannelsLast);
  const int64_t c = last.size(1), h = last.size(2), w = last.size(3), strides[4] = {h * w * c, 1, w * c, c};
  return last.as_strided(last.sizes(), strides, last.storage_offset());  // sets strides of dimensions of size 1 too
}

// clang-format off
constexpr AtenRow kRows[] = {
    {"onednn::linear_dynamic_fp16(Tensor x, Tensor w, Tensor? bias) -> Tensor", boxed<linear_half>},
    {"onednn::linear_relu_dynamic_fp16(Tensor x, Tensor w, Tensor? bias) -> Tensor", boxed<linear_half_relu>},
    {"quantized::embedding_bag_byte_prepack(Tensor weight) -> Tensor", boxed<cpu::embedding_bag_byte_prepack>},
    {"quantized::embedding_bag_byte_rowwise_offsets(Tensor weight, Tensor indices, Tensor? offsets=None, bool scale_grad_by_freq=False, int mode=0, bool pruned_weights=False, Tensor? per_sample_weights=None, Tensor? compressed_indices_mapping=None, bool include_last_offset=False) -> Tensor", boxed<cpu::embedding_bag_byte_rowwise_offsets>},
    {"quantized::embedding_bag_byte_unpack(Tensor weight) -> Tensor", boxed<cpu::embedding_bag_byte_unpack>},
    {"quantized::max_pool2d(Tensor qx, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode) -> Tensor", boxed<max_pool2d_bytes>},
    {"quantized_decomposed::_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype) -> (Tensor, Tensor)", boxed<choose_qparams_per_token_asymmetric>},
    {"quantized_decomposed::choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)", boxed<choose_qparams>},
    {"quantized_decomposed::choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)", boxed<choose_qparams_per_token>},
    {"quantized_decomposed::choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> (Tensor, Tensor)", boxed<choose_qparams_per_token_asymmetric>},
    {"quantized_decomposed::choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)", boxed<choose_qparams_symmetric>},
    {"quantized_decomposed::dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor", boxed<dequantize_per_channel>},
    {"quantized_decomposed::dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, int quant_min, int quant_max, ScalarType dtype, int group_size, ScalarType output_dtype) -> Tensor", boxed<dequantize_per_channel_group>},
    {"quantized_decomposed::dequantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor", boxed<dequantize_per_tensor>},
    {"quantized_decomposed::dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor", boxed<dequantize_by_tensor>},
    {"quantized_decomposed::dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor", boxed<dequantize_by_tensors>},
    {"quantized_decomposed::dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype, ScalarType output_dtype) -> Tensor", boxed<dequantize_per_token>},
    {"quantized_decomposed::quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max, ScalarType dtype) -> Tensor", boxed<quantize_per_channel>},
    {"quantized_decomposed::quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype, int group_size) -> Tensor", boxed<quantize_per_channel_group>},
    {"quantized_decomposed::quantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype) -> Tensor", boxed<quantize_per_tensor>},
    {"quantized_decomposed::quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, ScalarType dtype) -> Tensor", boxed<quantize_by_tensor>},
    {"quantized_decomposed::quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, ScalarType dtype) -> Tensor", boxed<quantize_by_tensors>},
    {"quantized_decomposed::quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype) -> Tensor", boxed<quantize_per_token>},
};
// clang-format on

}  // namespace

std::span<const AtenRow> quantised_rows() { return kRows; }

}  // namespace sconce::custom_ops
