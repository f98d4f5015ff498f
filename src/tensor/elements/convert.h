// Bulk conversion of packed elements between any two dtypes, as at::Tensor::copy_ converts (torch 2.15): float to
// integer truncates (values out of range give the result of x86's instructions), anything to bool is "not zero",
// complex to real drops the imaginary part; half, bfloat16 and float8 are converted through float.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sconce/dtype.h"
#include "sconce/float_types.h"

namespace sconce {

// Converts n packed elements; source and destination do not overlap unless they are the same bytes of the same size.
// kUnsupported for float4 to or from any other dtype.
void convert(DType from, const void* source, DType to, void* destination, int64_t n);

// Conversions that kernels use directly.
void half_to_float(const Half* source, float* destination, int64_t n) noexcept;
void half_from_float(const float* source, Half* destination, int64_t n) noexcept;
void bfloat16_to_float(const BFloat16* source, float* destination, int64_t n) noexcept;
void bfloat16_from_float(const float* source, BFloat16* destination, int64_t n) noexcept;

// Converts one element, for scalars, by the same rules.
template <class To, class From>
To convert_value(From value) noexcept;

namespace detail {

// Conversion of out-of-range numbers is undefined in C++; these functions define the result, in forms that still
// vectorise.
template <class To, class From>
To truncate(From value) noexcept {
  if constexpr (sizeof(To) == 8 && !std::is_signed_v<To>) {
    constexpr From kHalfRange = static_cast<From>(0x1p63);
    const bool upper = value >= kHalfRange;
    const auto part = static_cast<uint64_t>(static_cast<int64_t>(upper ? value - kHalfRange : value));
    return upper ? part ^ (uint64_t{1} << 63) : part;
  } else if constexpr (sizeof(To) == 4 && !std::is_signed_v<To>) {
    constexpr From kHalfRange = static_cast<From>(0x1p31);
    const bool upper = value >= kHalfRange;
    const auto part = static_cast<uint32_t>(static_cast<int32_t>(upper ? value - kHalfRange : value));
    return upper ? part ^ (uint32_t{1} << 31) : part;
  } else if constexpr (sizeof(To) == 8) {
    return static_cast<To>(value);
  } else if constexpr (std::is_same_v<To, uint8_t> && std::is_same_v<From, double>) {
    return static_cast<To>(static_cast<int64_t>(value));
  } else {
    return static_cast<To>(static_cast<int32_t>(value));
  }
}

}  // namespace detail

template <class To, class From>
To convert_value(From value) noexcept {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (kIsSmallFloat<From>) {
    return convert_value<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<From, ComplexHalf>) {
    return convert_value<To>(static_cast<ComplexFloat>(value));
  } else if constexpr (kIsComplex<From>) {
    if constexpr (std::is_same_v<To, ComplexHalf>)
      return ComplexHalf(ComplexFloat(value));
    else if constexpr (kIsComplex<To>)
      return To(static_cast<typename To::value_type>(value.real()), static_cast<typename To::value_type>(value.imag()));
    else if constexpr (std::is_same_v<To, bool>)
      return value.real() != 0 || value.imag() != 0;
    else
      return convert_value<To>(value.real());
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != 0;
  } else if constexpr (kIsSmallFloat<To>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, ComplexHalf>) {
    return ComplexHalf(ComplexFloat(static_cast<float>(value), 0));
  } else if constexpr (kIsComplex<To>) {
    return To(static_cast<typename To::value_type>(value), 0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return detail::truncate<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace sconce
