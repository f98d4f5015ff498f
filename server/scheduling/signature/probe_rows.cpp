#include "server/scheduling/signature/probe_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "server/support/cpp_type.h"
#include "src/support/hash.h"

namespace sconce::server::scheduling {
namespace {

constexpr double kFar = 1000;  // factor between ordinary rows and larger or smaller ones

// The sum of three uniform numbers: mean 0, variance 1, from -3 to 3.
double ordinary(uint64_t bits) noexcept {
  constexpr double kStep = 2.0 / (1 << 21);
  const auto part = [&](int shift) { return static_cast<double>(bits >> shift & 0x1FFFFF) * kStep - 1; };
  return part(0) + part(21) + part(42);
}

double float_value(const ProbeRow& row, const RowStyle& style, uint64_t bits) noexcept {
  double value = ordinary(bits);
  if (style.unsigned_values) value = std::abs(value) / 3;
  value *= style.scale;
  switch (row.kind) {
    case RowKind::kOrdinary:
      break;
    case RowKind::kSmall:
      value /= kFar;
      break;
    case RowKind::kConstant:
      value = (0.25 + static_cast<double>(row.seed % 4) / 4) * style.scale;
      break;
    case RowKind::kZeros:
      return 0;
    case RowKind::kLargeUp:
      value = std::abs(value) * kFar;
      break;
    case RowKind::kLargeDown:
      value = -std::abs(value) * kFar;
      break;
    case RowKind::kNotANumber:
      return std::numeric_limits<double>::quiet_NaN();
    case RowKind::kInfinite:
      if (bits >> 63) value = std::copysign(std::numeric_limits<double>::infinity(), value);
      break;
  }
  if (row.nudge != 0) value *= 1 + style.unit * (static_cast<double>(splitmix64(bits ^ row.nudge) % 3) - 1);
  return value;
}

bool bit_value(const ProbeRow& row, uint64_t bits) noexcept {
  switch (row.kind) {
    case RowKind::kConstant:
    case RowKind::kLargeUp:
      return true;
    case RowKind::kZeros:
      return false;
    case RowKind::kSmall:
      return (bits & 7) == 0;
    case RowKind::kLargeDown:
      return (bits & 7) != 0;
    default:
      return (bits & 1) != 0;
  }
}

// A float within the bounds, or the one nearest to the value without bounds.
double bounded_float(const ProbeRow& row, const RowStyle& style, const ValueBounds& bounds, uint64_t bits) noexcept {
  const double width = bounds.high - bounds.low;
  if (!std::isfinite(width)) return bounds.nearest(float_value(row, style, bits), false);
  switch (row.kind) {
    case RowKind::kConstant:
      return bounds.low + width * static_cast<double>(1 + row.seed % 3) / 4;
    case RowKind::kZeros:
      return bounds.nearest(0, false);
    case RowKind::kLargeDown:
      return bounds.low;
    case RowKind::kLargeUp:
    case RowKind::kNotANumber:
    case RowKind::kInfinite:
      return bounds.high;
    default:
      break;
  }
  double value = bounds.low + width * std::abs(ordinary(bits)) / (row.kind == RowKind::kSmall ? 3 * kFar : 3);
  if (row.nudge != 0) value *= 1 + style.unit * (static_cast<double>(splitmix64(bits ^ row.nudge) % 3) - 1);
  return bounds.nearest(value, false);
}

// 0 and 1, or the two smallest numbers that the model accepts.
double whole_value(const ProbeRow& row, const ValueBounds& bounds, uint64_t bits) noexcept {
  const double least = std::isfinite(bounds.low) ? std::max(0.0, std::ceil(bounds.low)) : 0;
  return bounds.nearest(least + static_cast<double>(bit_value(row, bits)), true);
}

template <class T>
T element(const ProbeRow& row, const RowStyle& style, const ValueBounds& bounds, uint64_t bits) noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    return bit_value(row, bits);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<int64_t>(std::clamp(whole_value(row, bounds, bits), -0x1p62, 0x1p62)));
  } else if constexpr (kIsComplex<T>) {
    using Part = std::conditional_t<std::is_same_v<T, ComplexDouble>, double, float>;
    return T(std::complex<Part>(static_cast<Part>(float_value(row, style, bits)),
                                static_cast<Part>(float_value(row, style, splitmix64(bits)))));
  } else if constexpr (std::is_same_v<T, double>) {
    return bounds.known() ? bounded_float(row, style, bounds, bits) : float_value(row, style, bits);
  } else {
    return T(
        static_cast<float>(bounds.known() ? bounded_float(row, style, bounds, bits) : float_value(row, style, bits)));
  }
}

}  // namespace

bool fill_rows(const Tensor& input, size_t ordinal, int64_t first, int64_t count, const ProbeRow& row,
               const RowStyle& style, const ValueBounds& bounds) {
  if (input.numel() == 0) return true;
  const int64_t per_row = input.numel() / input.size(0);
  const uint64_t seed = splitmix64(uint64_t{row.seed} << 32 | ordinal);
  const auto fill = [&]<class T>(T* data) {
    for (int64_t i = 0; i < count * per_row; ++i)
      data[first * per_row + i] = element<T>(row, style, bounds, splitmix64(seed + static_cast<uint64_t>(i)));
    return true;
  };
  return with_cpp_type(input.dtype(), [&]<class T>() {
    if constexpr (std::is_same_v<T, Float4E2M1FNx2>)
      return false;
    else
      return fill(static_cast<T*>(input.storage()->data()));
  });
}

}  // namespace sconce::server::scheduling
