#include "server/support/json/small_floats.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace sconce::server {
namespace {

struct Float8Format {
  DType dtype;
  int mantissa_bits;
  int bias;
  uint8_t largest;  // code of the largest finite value
  int infinity;     // code of +infinity, -1 if there is none
  uint8_t nan;
  bool is_signed;
};

constexpr std::array<Float8Format, 5> kFormats{{
    {DType::kFloat8E5M2, 2, 15, 0x7b, 0x7c, 0x7f, true},
    {DType::kFloat8E4M3FN, 3, 7, 0x7e, -1, 0x7f, true},
    {DType::kFloat8E5M2FNUZ, 2, 16, 0x7f, -1, 0x80, true},
    {DType::kFloat8E4M3FNUZ, 3, 8, 0x7f, -1, 0x80, true},
    {DType::kFloat8E8M0FNU, 0, 127, 0xfe, -1, 0xff, false},
}};

const Float8Format& format_of(DType dtype) noexcept {
  return *std::find_if(kFormats.begin(), kFormats.end(), [&](const Float8Format& f) { return f.dtype == dtype; });
}

// Value of a finite code without its sign bit.
float magnitude(uint8_t code, const Float8Format& f) noexcept {
  if (!f.is_signed) return std::ldexp(1.0f, code - f.bias);
  const int exponent = code >> f.mantissa_bits;
  const int mantissa = code & ((1 << f.mantissa_bits) - 1);
  if (exponent == 0) return std::ldexp(static_cast<float>(mantissa), 1 - f.bias - f.mantissa_bits);
  return std::ldexp(static_cast<float>(mantissa + (1 << f.mantissa_bits)), exponent - f.bias - f.mantissa_bits);
}

}  // namespace

float decode_float16(uint16_t bits) noexcept { return _cvtsh_ss(bits); }
uint16_t encode_float16(float value) noexcept {
  return static_cast<uint16_t>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

float decode_bfloat16(uint16_t bits) noexcept { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
uint16_t encode_bfloat16(float value) noexcept {
  if (std::isnan(value)) return 0x7fc0;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float decode_float8(uint8_t bits, DType dtype) noexcept {
  const Float8Format& f = format_of(dtype);
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (!f.is_signed) return bits == f.nan ? kNan : magnitude(bits, f);
  if (bits == f.nan) return kNan;
  const uint8_t code = bits & 0x7f;
  float value;
  if (code <= f.largest) {
    value = magnitude(code, f);
  } else {
    value = code == f.infinity ? std::numeric_limits<float>::infinity() : kNan;
  }
  return (bits & 0x80) != 0 ? -value : value;
}

std::optional<uint8_t> encode_float8(float value, DType dtype) noexcept {
  const Float8Format& f = format_of(dtype);
  if (std::isnan(value)) return f.nan;
  if (!f.is_signed && value <= 0) return std::nullopt;
  // Types without a negative zero use its code for NaN.
  const bool negative = std::signbit(value);
  const uint8_t sign = negative ? 0x80 : 0;
  const float size = std::fabs(value);
  if (std::isinf(size)) {
    if (f.infinity < 0) return std::nullopt;
    return static_cast<uint8_t>(f.infinity | sign);
  }
  // Finds the first code whose value is not smaller.
  int low = 0, high = f.largest;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (magnitude(static_cast<uint8_t>(middle), f) < size) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const float above = magnitude(static_cast<uint8_t>(low), f);
  if (above < size) {
    // Above the largest value, numbers up to half a step away still round to it.
    const float step = above - magnitude(static_cast<uint8_t>(low - 1), f);
    const bool odd = (low & 1) != 0;
    const double limit = static_cast<double>(above) + 0.5 * step;
    if (size > limit || (size == limit && (odd || !f.is_signed))) return std::nullopt;
    return static_cast<uint8_t>(low | sign);
  }
  if (above > size && low > 0) {
    const double below = magnitude(static_cast<uint8_t>(low - 1), f);
    const double middle = (below + above) / 2;
    const bool down = size < middle || (size == middle && f.is_signed && (low & 1) != 0);
    if (down) --low;
  }
  if (low == 0 && f.nan == 0x80) return uint8_t{0};
  return static_cast<uint8_t>(low | sign);
}

}  // namespace sconce::server
