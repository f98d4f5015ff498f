// Reads one element of a tensor in JSON text: integers exactly, floats correctly rounded. All errors are
// kInvalidArgument and name the byte offset. Used by one thread.
#pragma once

#include <fast_float/fast_float.h>
#include <immintrin.h>

#include <array>
#include <bit>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>

#include "server/support/json/powers_of_ten.h"
#include "server/support/json/small_floats.h"
#include "server/support/json/tensor_json_elements.h"
#include "server/support/json_cursor.h"

namespace sconce::server {

// 10^-22 to 10^22, correctly rounded.
constexpr std::array<double, 45> kScale = {
    1e-22, 1e-21, 1e-20, 1e-19, 1e-18, 1e-17, 1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8,
    1e-7,  1e-6,  1e-5,  1e-4,  1e-3,  1e-2,  1e-1,  1e0,   1e1,   1e2,   1e3,   1e4,   1e5,   1e6,  1e7,
    1e8,   1e9,   1e10,  1e11,  1e12,  1e13,  1e14,  1e15,  1e16,  1e17,  1e18,  1e19,  1e20,  1e21, 1e22};

inline unsigned digit(char c) noexcept { return static_cast<unsigned char>(c) - '0'; }

// Counts the digits at the start of the eight bytes at p and computes their value, without data-dependent branches.
inline unsigned digit_run(const char* p, uint64_t& value) noexcept {
  uint64_t v;
  std::memcpy(&v, p, 8);
  v ^= 0x3030303030303030;  // a digit becomes its value, anything else 10 or more
  const uint64_t others = (((v & 0x7f7f7f7f7f7f7f7f) + 0x7676767676767676) | v) & 0x8080808080808080;
  const unsigned count = static_cast<unsigned>(std::countr_zero(others)) / 8;
  v = count == 0 ? 0 : v << (64 - 8 * count);  // leading zeros in place of the bytes after the digits
  v = (v * 10) + (v >> 8);                     // pairs, then fours, then eight
  value =
      (((v & 0x000000ff000000ff) * 0x000f424000000064) + (((v >> 16) & 0x000000ff000000ff) * 0x0000271000000001)) >> 32;
  return count;
}

// Appends the digits at p to value, which wraps if there are too many. Returns the end of the digits.
inline const char* read_digits(const char* p, const char* end, uint64_t& value) noexcept {
  while (end - p >= 8) {
    uint64_t run;
    const unsigned count = digit_run(p, run);
    value = value * kPow10U[count] + run;
    p += count;
    if (count != 8) return p;
  }
  for (unsigned c; p != end && (c = digit(*p)) <= 9; ++p) value = value * 10 + c;
  return p;
}

// A JSON number as mantissa * 10^exponent.
struct Decimal {
  uint64_t mantissa = 0;
  int64_t exponent = 0;
  bool negative = false;
};

// Reads a number of at most 15 digits, with or without a point, from 16 readable bytes. No branch depends on the
// positions of digits and point. Returns the end of the number; null if it is longer or of another form.
inline const char* read_short(const char* p, Decimal& d) noexcept {
  const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i digits = _mm_sub_epi8(text, _mm_set1_epi8('0'));
  const __m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(digits, _mm_set1_epi8(9)), digits);
  const unsigned others = static_cast<unsigned>(_mm_movemask_epi8(is_digit)) ^ 0xffff;
  const unsigned points = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8('.'))));
  const unsigned point = others & (0 - others) & points;  // the bit of the first non-digit, if it is a point
  const unsigned behind = others ^ point;
  if (behind == 0) return nullptr;
  const int whole = std::countr_zero(others), end = std::countr_zero(behind);
  if (whole == 0 || end == whole + 1 || (whole > 1 && *p == '0')) return nullptr;
  const int count = end - (point != 0);
  d.exponent = whole - count;
  // Moves the digits to the end of the vector, over the point, with zeros before them.
  const __m128i iota = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __m128i from = _mm_add_epi8(iota, _mm_set1_epi8(static_cast<char>(count - 16)));
  from = _mm_sub_epi8(from, _mm_cmpgt_epi8(from, _mm_set1_epi8(static_cast<char>(whole - 1))));
  const __m128i ones = _mm_shuffle_epi8(digits, from);
  const __m128i tens = _mm_maddubs_epi16(ones, _mm_set1_epi16(0x010a));
  const __m128i hundreds = _mm_madd_epi16(tens, _mm_set1_epi32(0x00010064));
  const __m128i halves = _mm_madd_epi16(_mm_packus_epi32(hundreds, hundreds), _mm_set1_epi32(0x00012710));
  const uint64_t both = static_cast<uint64_t>(_mm_cvtsi128_si64(halves));
  d.mantissa = (both & 0xffffffff) * kPow10U[8] + (both >> 32);
  return p + end;
}

template <class T>
class ElementReader {
 public:
  explicit ElementReader(JsonCursor& in) : in_(in), end_(in.end()) {}

  // Reads one element at p, after whitespace.
  const char* read(const char* p, T& out) const {
    if constexpr (std::same_as<T, bool>) {
      return read_bool(p, out);
    } else if constexpr (std::integral<T>) {
      return read_integer(p, out);
    } else if constexpr (std::floating_point<T>) {
      return read_float(p, out);
    } else {
      float value;
      const char* next = ElementReader<float>(in_).read_float(p, value);
      convert(p, value, out);
      return next;
    }
  }

  [[noreturn, gnu::cold, gnu::noinline]] void fail(const char* p, std::string_view problem) const {
    in_.set_position(p);
    in_.fail(problem);
  }

  const char* read_float(const char* p, T& out) const requires std::floating_point<T> {
    // For most float32 values read_short() is faster than fast_float; for float64, which has more digits, it is slower.
    if constexpr (std::same_as<T, float>) {
      Decimal d;
      d.negative = p != end_ && *p == '-';
      const char* const digits = p + d.negative;
      if (end_ - digits > 16) [[likely]] {
        const char* const next = read_short(digits, d);
        if (next != nullptr && (*next | 0x20) != 'e' && convert_fast(d, out)) [[likely]]
          return next;
      }
    }
    return read_by_library(p, out);
  }

 private:
  // Uses fast_float, restricted to JSON's grammar: it would also accept "01", "1." and ".5".
  const char* read_by_library(const char* p, T& out) const requires std::floating_point<T> {
    const char* digits = p;
    if (digits != end_ && *digits == '-') ++digits;
    if (digits == end_ || digit(*digits) > 9) [[unlikely]]
      return read_token(p, out);
    if (*digits == '0' && end_ - digits > 1 && digit(digits[1]) <= 9) [[unlikely]]
      fail(p, "number with a leading zero");
    const auto [next, ec] = fast_float::from_chars(p, end_, out);
    if (ec == std::errc::invalid_argument) [[unlikely]]
      fail(p, "malformed number");
    while (digits != next && digit(*digits) <= 9) ++digits;
    const bool point = digits != next && *digits == '.';
    if (point && (digits + 1 == next || digit(digits[1]) > 9)) [[unlikely]]
      fail(p, "malformed number");
    // fast_float ignores an exponent without digits.
    if (next != end_ && (*next | 0x20) == 'e') [[unlikely]]
      fail(p, "malformed number");
    if (std::isinf(out)) [[unlikely]]
      out_of_range(p);
    return next;
  }

  const char* read_bool(const char* p, bool& out) const {
    if (end_ - p >= 4 && std::memcmp(p, "true", 4) == 0) {
      out = true;
      return p + 4;
    }
    if (end_ - p >= 5 && std::memcmp(p, "false", 5) == 0) {
      out = false;
      return p + 5;
    }
    fail(p, "expected true or false");
  }

  const char* read_integer(const char* p, T& out) const {
    const char* const start = p;
    const bool negative = p != end_ && *p == '-';
    p += negative;
    const char* const digits = p;
    uint64_t value = 0;
    p = read_digits(p, end_, value);
    const ptrdiff_t count = p - digits;
    if (count == 0) [[unlikely]]
      fail(start, "expected an integer");
    if (*digits == '0' && count > 1) [[unlikely]]
      fail(start, "number with a leading zero");
    if (p != end_ && (*p == '.' || *p == 'e' || *p == 'E')) [[unlikely]]
      fail(start, "expected an integer");
    bool fits = true;
    if (count > 19) [[unlikely]]
      fits = count == 20 && std::from_chars(digits, p, value).ec == std::errc();
    constexpr uint64_t kMax = static_cast<uint64_t>(std::numeric_limits<T>::max());
    if (negative) {
      fits = fits && (std::is_signed_v<T> ? value <= kMax + 1 : value == 0);
      value = 0 - value;
    } else {
      fits = fits && value <= kMax;
    }
    if (!fits) [[unlikely]]
      out_of_range(start);
    out = static_cast<T>(value);
    return p;
  }

  // NaN, Infinity, -Infinity.
  const char* read_token(const char* p, T& out) const requires std::floating_point<T> {
    const std::string_view rest(p, static_cast<size_t>(end_ - p));
    if (rest.starts_with("NaN")) {
      out = std::numeric_limits<T>::quiet_NaN();
      return p + 3;
    }
    if (rest.starts_with("Infinity")) {
      out = std::numeric_limits<T>::infinity();
      return p + 8;
    }
    if (rest.starts_with("-Infinity")) {
      out = -std::numeric_limits<T>::infinity();
      return p + 9;
    }
    fail(p, "expected a number");
  }

  // Returns whether the result is known to be correctly rounded.
  static bool convert_fast(const Decimal& d, float& out) noexcept {
    if (d.mantissa == 0) {
      out = d.negative ? -0.0f : 0.0f;
      return true;
    }
    // At most two units in the last place off, which matters only near the middle between two floats.
    const double value = static_cast<double>(d.mantissa) * kScale[static_cast<size_t>(d.exponent + 22)];
    if (value < FLT_MIN || value > FLT_MAX) return false;
    const uint64_t tail = std::bit_cast<uint64_t>(value) & 0x1fffffff;
    if (tail - (0x10000000 - 8) <= 16) return false;
    out = static_cast<float>(std::copysign(value, d.negative ? -1.0 : 1.0));
    return true;
  }
  void convert(const char* p, float value, Half& out) const {
    out.bits = encode_float16(value);
    if ((out.bits & 0x7fff) == 0x7c00 && !std::isinf(value)) out_of_range(p);
  }
  void convert(const char* p, float value, BFloat& out) const {
    out.bits = encode_bfloat16(value);
    if ((out.bits & 0x7fff) == 0x7f80 && !std::isinf(value)) out_of_range(p);
  }
  template <DType dtype>
  void convert(const char* p, float value, Float8<dtype>& out) const {
    const std::optional<uint8_t> bits = encode_float8(value, dtype);
    if (!bits) out_of_range(p);
    out.bits = *bits;
  }

  [[noreturn, gnu::cold, gnu::noinline]] void out_of_range(const char* p) const {
    fail(p, "number out of range for the tensor's datatype");
  }

  JsonCursor& in_;
  const char* end_;
};

}  // namespace sconce::server
