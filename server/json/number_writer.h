// Writes one element of a tensor as JSON text: integers exactly, floats as the shortest decimal that reads back the
// same, with a point or an exponent. NaN, Infinity and -Infinity are bare tokens.
#pragma once

#include <bit>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

#include "server/json/powers_of_ten.h"
#include "server/json/small_floats.h"
#include "server/json/tensor_json_elements.h"

namespace sconce::server {

// Bytes that writing one element may touch.
constexpr size_t kElementRoom = 33;

// The digits of a number below 10^8 as bytes, the first digit in the lowest byte.
inline uint64_t eight_digits(uint64_t number) noexcept {
  uint64_t v = number / 10000 | (number % 10000) << 32;
  const uint64_t hundreds = (v * 10486) >> 20 & 0x0000007f0000007f;
  v = hundreds | (v - 100 * hundreds) << 16;
  const uint64_t tens = (v * 103) >> 10 & 0x000f000f000f000f;
  return tens | (v - 10 * tens) << 8;
}

// Writes a float that is not whole, if it is a decimal of at most digits10 digits and not below 0.001; else returns
// null. Different such decimals are different floats, so the one that reads back as the value is its shortest form.
template <std::floating_point T>
char* write_short(char* p, T value) noexcept {
  constexpr int kDigits = std::numeric_limits<T>::digits10;
  const T size = std::fabs(value);
  if (!(size >= T(1e-3) && size < static_cast<T>(kPow10[kDigits]))) return nullptr;
  const uint64_t whole = static_cast<uint64_t>(static_cast<int64_t>(size));
  const size_t about = static_cast<size_t>(std::bit_width(whole | 1) * 1233 >> 12);
  const size_t decimals = kDigits - about - (whole >= kPow10U[about]);
  const int64_t scaled = std::llrint(static_cast<double>(size) * kPow10[decimals]);
  if (static_cast<T>(scaled) / static_cast<T>(kPow10[decimals]) != size) return nullptr;

  *p = '-';
  p += value < 0;
  p = std::to_chars(p, p + kElementRoom, whole).ptr;
  *p++ = '.';
  const uint64_t fraction = static_cast<uint64_t>(scaled) - whole * kPow10U[decimals];
  const auto store = [](char* out, uint64_t digits) {
    digits |= 0x3030303030303030;
    std::memcpy(out, &digits, 8);
  };
  const auto without_zeros = [](uint64_t digits) { return 8 - std::countl_zero(digits) / 8; };
  if constexpr (kDigits <= 8) {
    const uint64_t digits = eight_digits(fraction * kPow10U[8 - decimals]);
    store(p, digits);
    return p + without_zeros(digits);
  } else {
    const uint64_t padded = fraction * kPow10U[16 - decimals];
    const uint64_t first = eight_digits(padded / kPow10U[8]), last = eight_digits(padded % kPow10U[8]);
    store(p, first);
    store(p + 8, last);
    return p + (last != 0 ? 8 + without_zeros(last) : without_zeros(first));
  }
}

template <class T>
char* write_element(char* p, T value) noexcept {
  if constexpr (std::same_as<T, bool>) {
    const std::string_view text = value ? "true" : "false";
    std::memcpy(p, text.data(), text.size());
    return p + text.size();
  } else if constexpr (std::integral<T>) {
    return std::to_chars(p, p + kElementRoom, value).ptr;
  } else if constexpr (std::floating_point<T>) {
    if (!std::isfinite(value)) [[unlikely]] {
      const std::string_view text = std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
      std::memcpy(p, text.data(), text.size());
      return p + text.size();
    }
    // Whole numbers that the type holds exactly are their own shortest form.
    constexpr T kWhole = std::same_as<T, float> ? T(1 << 24) : T(int64_t{1} << 53);
    if (std::fabs(value) < kWhole && std::trunc(value) == value && (value != 0 || !std::signbit(value))) {
      char* const end = std::to_chars(p, p + kElementRoom, static_cast<int64_t>(value)).ptr;
      end[0] = '.';
      end[1] = '0';
      return end + 2;
    }
    if (char* const end = write_short(p, value); end != nullptr) return end;
    char* const end = std::to_chars(p, p + kElementRoom, value).ptr;
    for (const char* c = p; c != end; ++c) {
      if (*c == '.' || *c == 'e') return end;
    }
    end[0] = '.';
    end[1] = '0';
    return end + 2;
  } else if constexpr (std::same_as<T, Half>) {
    return write_element(p, decode_float16(value.bits));
  } else if constexpr (std::same_as<T, BFloat>) {
    return write_element(p, decode_bfloat16(value.bits));
  } else {
    return write_element(p, decode_float8(value.bits, [&]<DType dtype>(Float8<dtype>) { return dtype; }(value)));
  }
}

}  // namespace sconce::server
