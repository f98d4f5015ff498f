// Element types that C++ lacks: half, bfloat16, the float8 family and complex half, bit-compatible with PyTorch's.
//
// Conversion from float rounds to nearest, ties to even, exactly as c10's types do (torch 2.15); a double or an integer
// is converted to float first, as in PyTorch. Conversion to float is exact. Arithmetic is done in float by the caller.
#pragma once

#include <bit>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "sconce/dtype.h"

namespace sconce {
namespace detail {

#if defined(__F16C__)
using Half8 [[gnu::vector_size(16)]] = short;
using Float4 [[gnu::vector_size(16)]] = float;
#endif

constexpr float half_to_float(uint16_t half) noexcept {
#if defined(__F16C__)
  if (!std::is_constant_evaluated())
    return __builtin_ia32_vcvtph2ps(Half8{static_cast<short>(half), 0, 0, 0, 0, 0, 0, 0})[0];
#endif
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t magnitude = half & 0x7FFFu;
  if (magnitude >= 0x7C00)  // infinity, NaN (made quiet, as the hardware does)
    return std::bit_cast<float>(sign | 0x7F800000u | (magnitude > 0x7C00 ? 0x400000u : 0u) | (magnitude & 0x3FF) << 13);
  if (magnitude >= 0x400) return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f));
}

constexpr uint16_t half_from_float(float value) noexcept {
#if defined(__F16C__)
  if (!std::is_constant_evaluated())
    return static_cast<uint16_t>(__builtin_ia32_vcvtps2ph(Float4{value, 0, 0, 0}, 0)[0]);
#endif
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return static_cast<uint16_t>(sign | 0x7E00 | (magnitude >> 13 & 0x3FF));
  if (magnitude >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);  // 65520 and above: infinity
  if (magnitude < 0x38800000)  // subnormal: the sum's last place is 2^-24, so the addition rounds
    return static_cast<uint16_t>(sign |
                                 (std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u));
  magnitude -= 112u << 23;
  return static_cast<uint16_t>(sign | (magnitude + 0xFFF + (magnitude >> 13 & 1)) >> 13);
}

// How a format converts values above its largest finite value, and which codes are NaN.
enum class Float8Kind {
  kIeee,  // infinities and NaNs as in IEEE 754
  kFn,    // no infinity; all ones is NaN; values that are too large become the largest value
  kFnuz   // no infinity, no negative zero; 0x80 is NaN
};

template <int ExponentBits, int Bias, Float8Kind Kind>
struct Float8Format {
  static constexpr int kMantissaBits = 7 - ExponentBits;
  static constexpr int kShift = 23 - kMantissaBits;
  static constexpr uint32_t kRebias = static_cast<uint32_t>(127 - Bias) << 23;
  // Codes from kOverflow up are too large.
  static constexpr uint32_t kOverflow = Kind == Float8Kind::kIeee ? 0x7F & (0x7F << kMantissaBits)
                                        : Kind == Float8Kind::kFn ? 0x7F
                                                                  : 0x80;

  static constexpr uint8_t encode(float value) noexcept {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = bits >> 24 & 0x80;
    const uint32_t magnitude = bits & 0x7FFFFFFF;
    // Subnormal results: the sum's last place is the format's smallest value, so the addition rounds.
    constexpr uint32_t kMagic = static_cast<uint32_t>(127 - Bias + 1 + kShift) << 23;
    const uint32_t small =
        std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(kMagic)) - kMagic;
    const uint32_t rebiased = magnitude - kRebias;
    const uint32_t normal = (rebiased + ((1u << (kShift - 1)) - 1) + (rebiased >> kShift & 1)) >> kShift;
    uint32_t code = magnitude < kRebias + (1u << 23) ? small : normal;
    if constexpr (Kind == Float8Kind::kIeee) {
      code = code >= kOverflow ? (magnitude > 0x7F800000 ? 0x7F : kOverflow) : code;
      return static_cast<uint8_t>(sign | code);
    } else if constexpr (Kind == Float8Kind::kFn) {
      return static_cast<uint8_t>(sign | (code >= kOverflow ? (magnitude > 0x7F800000 ? 0x7F : 0x7E) : code));
    } else {
      return static_cast<uint8_t>(code >= kOverflow ? 0x80 : code == 0 ? 0 : sign | code);
    }
  }

  static constexpr float decode(uint8_t code) noexcept {
    const uint32_t sign = uint32_t{code & 0x80u} << 24;
    const uint32_t magnitude = code & 0x7F;
    if constexpr (Kind == Float8Kind::kIeee) {
      if (magnitude >= kOverflow)
        return std::bit_cast<float>(sign | 0x7F800000u | (magnitude > kOverflow ? 0x400000u : 0u) |
                                    (magnitude << kShift & 0x7FFFFF));
    } else if constexpr (Kind == Float8Kind::kFn) {
      if (magnitude == 0x7F) return std::bit_cast<float>(sign | 0x7FF00000u);
    } else {
      if (code == 0x80) return std::bit_cast<float>(0x7F800001u);  // NaN, which has no sign here
    }
    if (magnitude >> kMantissaBits) return std::bit_cast<float>(sign | ((magnitude << kShift) + kRebias));
    constexpr float kSmallest = std::bit_cast<float>(static_cast<uint32_t>(127 + 1 - Bias - kMantissaBits) << 23);
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(static_cast<float>(magnitude) * kSmallest));
  }
};

// Unsigned powers of two: code - 127 is the exponent, 255 is NaN. Negative numbers lose their sign.
struct E8M0Format {
  static constexpr uint8_t encode(float value) noexcept {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t exponent = bits >> 23 & 0xFF;
    if (exponent == 0xFF) return 0xFF;
    const uint32_t fraction = bits & 0x7FFFFF;
    // A tie goes up from a normal number and down from a subnormal one.
    return static_cast<uint8_t>(exponent + (fraction > 0x400000 || (fraction == 0x400000 && exponent > 0)));
  }
  static constexpr float decode(uint8_t code) noexcept {
    if (code == 0) return 0x1p-127f;
    return std::bit_cast<float>(code == 0xFF ? 0x7F800001u : uint32_t{code} << 23);
  }
};

template <class Format>
struct Float8 {
  uint8_t bits;
  Float8() = default;
  constexpr explicit Float8(float value) noexcept : bits(Format::encode(value)) {}
  constexpr operator float() const noexcept { return Format::decode(bits); }
};

}  // namespace detail

struct Half {
  uint16_t bits;
  Half() = default;
  constexpr explicit Half(float value) noexcept : bits(detail::half_from_float(value)) {}
  constexpr operator float() const noexcept { return detail::half_to_float(bits); }
};

struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  constexpr explicit BFloat16(float value) noexcept : bits(encode(value)) {}
  constexpr operator float() const noexcept { return std::bit_cast<float>(uint32_t{bits} << 16); }

  static constexpr uint16_t encode(float value) noexcept {
    const uint32_t b = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (b + 0x7FFF + (b >> 16 & 1)) >> 16;
    return static_cast<uint16_t>((b & 0x7FFFFFFF) > 0x7F800000 ? 0x7FC0 : rounded);
  }
};

using Float8E5M2 = detail::Float8<detail::Float8Format<5, 15, detail::Float8Kind::kIeee>>;
using Float8E4M3FN = detail::Float8<detail::Float8Format<4, 7, detail::Float8Kind::kFn>>;
using Float8E5M2FNUZ = detail::Float8<detail::Float8Format<5, 16, detail::Float8Kind::kFnuz>>;
using Float8E4M3FNUZ = detail::Float8<detail::Float8Format<4, 8, detail::Float8Kind::kFnuz>>;
using Float8E8M0FNU = detail::Float8<detail::E8M0Format>;

struct ComplexHalf {
  Half re, im;
  ComplexHalf() = default;
  constexpr explicit ComplexHalf(std::complex<float> value) noexcept : re(value.real()), im(value.imag()) {}
  constexpr operator std::complex<float>() const noexcept { return {re, im}; }
};
using ComplexFloat = std::complex<float>;
using ComplexDouble = std::complex<double>;

// Two 4-bit floats in one byte. They are stored, never converted.
struct Float4E2M1FNx2 {
  uint8_t bits;
};

// The C++ type of each dtype, both ways.
#define SCONCE_CPP_TYPES(X)          \
  X(kUInt8, uint8_t)                 \
  X(kInt8, int8_t)                   \
  X(kInt16, int16_t)                 \
  X(kInt32, int32_t)                 \
  X(kInt64, int64_t)                 \
  X(kFloat16, Half)                  \
  X(kFloat32, float)                 \
  X(kFloat64, double)                \
  X(kComplex32, ComplexHalf)         \
  X(kComplex64, ComplexFloat)        \
  X(kComplex128, ComplexDouble)      \
  X(kBool, bool)                     \
  X(kBFloat16, BFloat16)             \
  X(kFloat8E5M2, Float8E5M2)         \
  X(kFloat8E4M3FN, Float8E4M3FN)     \
  X(kFloat8E5M2FNUZ, Float8E5M2FNUZ) \
  X(kFloat8E4M3FNUZ, Float8E4M3FNUZ) \
  X(kUInt16, uint16_t)               \
  X(kUInt32, uint32_t)               \
  X(kUInt64, uint64_t)               \
  X(kFloat8E8M0FNU, Float8E8M0FNU)   \
  X(kFloat4E2M1FNx2, Float4E2M1FNx2)

template <DType D>
struct CppTypeOf;
template <class T>
struct DTypeOf;
#define SCONCE_X(enumerator, type)                    \
  template <>                                         \
  struct CppTypeOf<DType::enumerator> {               \
    using Type = type;                                \
  };                                                  \
  template <>                                         \
  struct DTypeOf<type> {                              \
    static constexpr DType value = DType::enumerator; \
  };                                                  \
  static_assert(sizeof(type) == dtype_bytes(DType::enumerator));
SCONCE_CPP_TYPES(SCONCE_X)
#undef SCONCE_X
template <DType D>
using CppType = typename CppTypeOf<D>::Type;
template <class T>
inline constexpr DType kDType = DTypeOf<T>::value;

template <class T>
inline constexpr bool kIsComplex =
    std::is_same_v<T, ComplexHalf> || std::is_same_v<T, ComplexFloat> || std::is_same_v<T, ComplexDouble>;
// Half, BFloat16 and float8 are stored small and computed in float.
template <class T>
inline constexpr bool kIsSmallFloat = !std::is_arithmetic_v<T> && !kIsComplex<T> && std::is_convertible_v<T, float>;

namespace detail {
template <class T>
struct ComputeTypeOf {
  using Type = std::conditional_t<kIsSmallFloat<T>, float, T>;
};
template <>
struct ComputeTypeOf<ComplexHalf> {
  using Type = ComplexFloat;
};
}  // namespace detail
// The type in which elements of type T are computed (at::opmath_type).
template <class T>
using ComputeType = typename detail::ComputeTypeOf<T>::Type;

}  // namespace sconce
