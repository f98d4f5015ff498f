#include "src/cpu/layers/quantised.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sconce/check.h"
#include "sconce/float_types.h"
#include "src/device/threads.h"

namespace sconce {
namespace {

constexpr int64_t kPiece = 256;

template <class T>
void quantise(const float* values, T* out, int64_t n, float inverse_scale, float zero_point) {
  constexpr float kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  for (int64_t i = 0; i < n; ++i)
    out[i] = static_cast<T>(std::clamp(std::nearbyint(values[i] * inverse_scale + zero_point), kLow, kHigh));
}

template <class T>
void round_to(const float* values, T* out, int64_t n, float inverse_scale) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(values[i] * inverse_scale);
}

// Reads n elements as float32.
void load(const void* from, DType dtype, float* to, int64_t n) noexcept {
  const auto each = [&]<class T>(const T* values) {
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(values[i]);
  };
  switch (dtype) {
    case DType::kUInt8:
      return each(static_cast<const uint8_t*>(from));
    case DType::kInt8:
      return each(static_cast<const int8_t*>(from));
    case DType::kFloat8E4M3FN:
      return each(static_cast<const Float8E4M3FN*>(from));
    case DType::kFloat8E5M2:
      return each(static_cast<const Float8E5M2*>(from));
    default:
      return gather_floats(dtype, from, 1, to, n);
  }
}

void store(const QuantisedResult& r, const float* from, DType dtype, void* to, int64_t n) noexcept {
  const auto inverse = static_cast<float>(1.0 / r.output_scale);
  const auto zero = static_cast<float>(r.output_zero_point);
  switch (dtype) {
    case DType::kUInt8:
      return quantise(from, static_cast<uint8_t*>(to), n, inverse, zero);
    case DType::kInt8:
      return quantise(from, static_cast<int8_t*>(to), n, inverse, zero);
    case DType::kFloat8E4M3FN:
      return round_to(from, static_cast<Float8E4M3FN*>(to), n, inverse);
    case DType::kFloat8E5M2:
      return round_to(from, static_cast<Float8E5M2*>(to), n, inverse);
    case DType::kFloat16:
      return round_to(from, static_cast<Half*>(to), n, inverse);
    case DType::kBFloat16:
      return round_to(from, static_cast<BFloat16*>(to), n, inverse);
    default:
      return round_to(from, static_cast<float*>(to), n, inverse);
  }
}

}  // namespace

void check_sum(std::string_view name, const QuantisedOther& other, DType output) {
  const bool integer = output == DType::kUInt8 || output == DType::kInt8;
  SCONCE_CHECK(integer || (other.scale == 1 && other.zero_point == 0), kInvalidArgument, name,
               ": expect extra input scale = 1.0 and zero point = 0 when output dtype is ", dtype_name(output),
               ", but got ", other.scale, " and ", other.zero_point, ", respectively");
}

std::optional<ByteFinish> byte_finish(const QuantisedResult& r, DType output) {
  const Fusion& f = r.fusion;
  if (r.other.how == QuantisedOther::How::kAdd) return std::nullopt;
  ByteFinish finish;
  if (output != DType::kUInt8 && output != DType::kInt8 && output != DType::kFloat32) return std::nullopt;
  if (f.activation == Activation::kRelu) {
    finish.low = 0;
  } else if (f.activation == Activation::kHardtanh && f.a <= f.b) {
    finish.low = f.a;
    finish.high = f.b;
  } else if (f.activation != Activation::kNone) {
    return std::nullopt;
  }
  finish.scale = r.scale.data_as<float>();
  if (r.bias.defined()) finish.bias = r.bias.data_as<float>();
  finish.add_old = r.other.how == QuantisedOther::How::kSum;
  finish.old_scale = static_cast<float>(r.other.scale);
  finish.old_zero = static_cast<float>(r.other.zero_point);
  if (r.quantised) {
    finish.inverse = static_cast<float>(1.0 / r.output_scale);
    finish.zero = static_cast<float>(r.output_zero_point);
  }
  return finish;
}

void finish_quantised(const QuantisedResult& r, const Tensor& sums, int64_t m, int64_t n, Tensor& output) {
  const bool integers = sums.dtype() == DType::kInt32;
  const float* const scale = r.scale.data_as<float>();
  const float* const bias = r.bias.defined() ? r.bias.data_as<float>() : nullptr;
  const auto other_scale = static_cast<float>(r.other.scale), other_zero = static_cast<float>(r.other.zero_point);
  const bool with_other = r.other.how != QuantisedOther::How::kNone;
  const auto itemsize = static_cast<int64_t>(output.itemsize());
  const auto other_itemsize = with_other ? static_cast<int64_t>(r.other.tensor.itemsize()) : 0;
  parallel_for(0, m, std::max<int64_t>(1, 16384 / std::max<int64_t>(n, 1)), [&](int64_t begin, int64_t end) noexcept {
    float row[kPiece], others[kPiece];
    for (int64_t i = begin; i < end; ++i)
      for (int64_t from = 0; from < n; from += kPiece) {
        const int64_t count = std::min(kPiece, n - from), at = i * n + from;
        if (integers) {
          const int32_t* s = sums.data_as<int32_t>() + at;
          for (int64_t j = 0; j < count; ++j) row[j] = static_cast<float>(s[j]) * scale[from + j];
        } else {
          const float* s = sums.data_as<float>() + at;
          for (int64_t j = 0; j < count; ++j) row[j] = s[j] * scale[from + j];
        }
        if (bias)
          for (int64_t j = 0; j < count; ++j) row[j] += bias[from + j];
        if (with_other) {
          load(static_cast<const std::byte*>(r.other.tensor.data()) + at * other_itemsize, r.other.tensor.dtype(),
               others, count);
          for (int64_t j = 0; j < count; ++j) row[j] += (others[j] - other_zero) * other_scale;
        }
        apply_fusion(r.fusion, row, nullptr, count);
        store(r, row, output.dtype(), static_cast<std::byte*>(output.data()) + at * itemsize, count);
      }
  });
}

}  // namespace sconce
