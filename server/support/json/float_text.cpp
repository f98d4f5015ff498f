#include "server/support/json/float_text.h"

#include <dragonbox/dragonbox.h>
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "server/support/json/powers_of_ten.h"

namespace sconce::server {
namespace {

// Schubfach (Raffaello Giulietti, "The Schubfach way to render doubles", 2020) for four floats at a time. A float is c
// * 2^q. With k = floor(log10(2^q)), the interval of numbers that round to it is wider than 10^k and not wider than
// 10^(k+1). The shortest decimal in it is therefore a multiple of 10^(k+1) if the interval contains one, else one of
// the two multiples of 10^k next to the float.
constexpr int kFractionBits = 23, kBias = 127;
constexpr uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000, kOne = 0x3f800000;
constexpr uint32_t kMinPlain = std::bit_cast<uint32_t>(0.001f);
constexpr uint32_t kMinLarge = std::bit_cast<uint32_t>(16777216.0f);  // from here on not every whole number is a float

// floor(log10(2^q)); for a power of two, below which floats are closer: floor(log10(3/4 * 2^q)).
constexpr int decimal_exponent(int q, bool close_below) noexcept {
  return (q * 1262611 - (close_below ? 524031 : 0)) >> 22;
}
constexpr int binary_exponent(int n) noexcept { return (n * 1741647) >> 19; }  // floor(log2(10^n))

constexpr int kMinPower = -31, kMaxPower = 45;
// The 64 highest bits of 10^n, plus one.
constexpr auto kPowersOfTen = [] {
  std::array<uint64_t, kMaxPower - kMinPower + 1> powers{};
  using Words = std::array<uint32_t, 10>;  // lowest first
  const auto highest = [](const Words& words) {
    size_t top = words.size() - 1;
    while (words[top] == 0) --top;
    unsigned __int128 bits = 0;
    for (size_t i = 0; i < 3; ++i) bits = bits << 32 | (i <= top ? words[top - i] : 0);
    return static_cast<uint64_t>(bits >> (32 - std::countl_zero(words[top]))) + 1;
  };
  Words words{1};
  for (int n = 0; n <= kMaxPower; ++n) {
    powers[static_cast<size_t>(n - kMinPower)] = highest(words);
    uint64_t carry = 0;
    for (uint32_t& word : words) {
      carry += uint64_t{word} * 10;
      word = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
  }
  words = {};
  words.back() = 1U << 31;
  for (int n = 0; n >= kMinPower; --n) {
    powers[static_cast<size_t>(n - kMinPower)] = highest(words);
    uint64_t rest = 0;
    for (size_t i = words.size(); i-- > 0;) {
      rest = rest << 32 | words[i];
      words[i] = static_cast<uint32_t>(rest / 10);
      rest %= 10;
    }
  }
  return powers;
}();

// Parameters that convert a float of a given exponent to a multiple of 10^k.
struct alignas(16) Scale {
  uint64_t power;  // of 10^-k
  int32_t shift;   // of c, before the multiplication
  int32_t exponent;
};
// By the float's exponent bits; the second half is for powers of two.
constexpr auto kScales = [] {
  std::array<Scale, 512> scales{};
  for (size_t i = 0; i < scales.size(); ++i) {
    const int bits = static_cast<int>(i % 256), q = std::max(bits, 1) - kBias - kFractionBits;
    const int k = decimal_exponent(q, i >= 256 && bits > 1);
    scales[i] = {kPowersOfTen[static_cast<size_t>(-k - kMinPower)], q + binary_exponent(-k) + 1, k};
  }
  return scales;
}();

// Four decimals of up to nine digits: digits * 10^exponent.
struct Decimals {
  alignas(32) int64_t first[4];  // the ninth digit from the end, in the highest byte
  alignas(32) int64_t rest[4];   // the other eight digits as bytes, the first one in the lowest byte
  int32_t exponents[4];

  __m128i digits(size_t i) const noexcept { return _mm_set_epi64x(rest[i], first[i]); }
};

using Lanes = int64_t __attribute__((vector_size(32)));
inline __m256i raw(Lanes a) noexcept { return reinterpret_cast<__m256i>(a); }
inline Lanes lanes(__m256i a) noexcept { return reinterpret_cast<Lanes>(a); }
inline Lanes product(Lanes a, Lanes b) noexcept { return lanes(_mm256_mul_epu32(raw(a), raw(b))); }  // of low halves
template <int bits>
Lanes right(Lanes a) noexcept {
  return lanes(_mm256_srli_epi64(raw(a), bits));
}

inline uint32_t magnitude(const float* value) noexcept {
  uint32_t bits;
  std::memcpy(&bits, value, sizeof bits);
  return bits & kMagnitude;
}

inline void shorten(const float* values, Decimals& out) noexcept {
  const auto scale_of = [&](size_t i) {
    const uint32_t bits = magnitude(values + i);
    const uint32_t size = bits == 0 ? kOne : bits;  // 0 is treated as 1, a number with a point
    const bool power_of_two = size << (32 - kFractionBits) == 0;
    const Scale& scale = kScales[size >> kFractionBits | static_cast<uint32_t>(power_of_two) << 8];
    out.exponents[i] = scale.exponent;
    return _mm_load_si128(reinterpret_cast<const __m128i*>(&scale));
  };
  const __m128i s0 = scale_of(0), s1 = scale_of(1), s2 = scale_of(2), s3 = scale_of(3);
  const Lanes power = lanes(_mm256_set_m128i(_mm_unpacklo_epi64(s2, s3), _mm_unpacklo_epi64(s0, s1)));
  const Lanes shift = lanes(_mm256_set_m128i(_mm_unpackhi_epi64(s2, s3), _mm_unpackhi_epi64(s0, s1))) & 0xffffffff;

  const __m128i bits = _mm_and_si128(_mm_castps_si128(_mm_loadu_ps(values)), _mm_set1_epi32(kMagnitude));
  const Lanes size = lanes(_mm256_cvtepu32_epi64(bits));
  const Lanes fraction = size & 0x7fffff;
  const Lanes c = fraction | ((size > 0x7fffff) & 0x800000);
  const Lanes close_below = (fraction == 0) & (size > 0xffffff);  // -1 if true
  // Quarters of multiples of 10^k. A bit below the lowest marks a truncated remainder.
  const Lanes high_power = right<32>(power);
  const auto scaled = [&](Lanes quarters) {
    const Lanes shifted = lanes(_mm256_sllv_epi64(raw(quarters), raw(shift)));
    const Lanes bits96 = product(high_power, shifted) + right<32>(product(power, shifted));
    return right<32>(bits96) | (((bits96 & 0xffffffff) > 1) & 1);
  };
  const Lanes odd = c & 1;  // the bounds of an odd float's interval round away from it
  const Lanes value = scaled(4 * c);
  const Lanes low = scaled(4 * c - 2 - close_below) + odd, high = scaled(4 * c + 2) - odd;
  const Lanes below = right<2>(value);
  const Lanes tens = right<35>(product(below, Lanes{} + 0xcccccccd));
  const Lanes ten = 8 * tens + 2 * tens;
  const Lanes ten_is_in = ~(low > 4 * ten), next_ten_is_in = ~(4 * ten + 40 > high);
  const Lanes below_is_in = ~(low > 4 * below), above_is_in = ~(4 * below + 4 > high);
  const Lanes middle = 4 * below + 2;
  const Lanes nearer_above = (value > middle) | ((value == middle) & -(below & 1));
  const Lanes one_is_in = below_is_in ^ above_is_in;
  const Lanes long_form = below - ((one_is_in & above_is_in) | (~one_is_in & nearer_above));
  const Lanes short_form = ten + (next_ten_is_in & 10);
  const Lanes is_short = ten_is_in ^ next_ten_is_in;
  const Lanes number = ((is_short & short_form) | (~is_short & long_form)) & (size != 0);

  // Divisions by 10^4, 100 and 10 are multiplications; they are exact below 10^8, 10^4 and 100.
  const Lanes has_nine = number > 99'999'999;  // the first of nine digits is 1: the number is below 10 * 2^24
  const Lanes eight = number - (has_nine & 100'000'000);
  const Lanes upper_four = right<45>(product(eight, Lanes{} + 3'518'437'209));
  const Lanes lower_four = eight - product(upper_four, Lanes{} + 10'000);
  const __m256i fours = _mm256_or_si256(raw(upper_four), _mm256_slli_epi64(raw(lower_four), 32));
  const __m256i hundreds = _mm256_srli_epi16(_mm256_mulhi_epu16(fours, _mm256_set1_epi16(5243)), 3);
  const __m256i in_hundred = _mm256_sub_epi16(fours, _mm256_mullo_epi16(hundreds, _mm256_set1_epi16(100)));
  const __m256i pairs = _mm256_or_si256(hundreds, _mm256_slli_epi32(in_hundred, 16));
  const __m256i first_of_pair = _mm256_mulhi_epu16(pairs, _mm256_set1_epi16(6554));
  const __m256i second = _mm256_sub_epi16(pairs, _mm256_mullo_epi16(first_of_pair, _mm256_set1_epi16(10)));
  const __m256i digits = _mm256_or_si256(first_of_pair, _mm256_slli_epi16(second, 8));
  _mm256_store_si256(reinterpret_cast<__m256i*>(out.rest), digits);
  _mm256_store_si256(reinterpret_cast<__m256i*>(out.first),
                     _mm256_slli_epi64(_mm256_and_si256(raw(has_nine), _mm256_set1_epi64x(1)), 56));
}

// Moves digits around a point: text[i] is digit from[i], counted from the first digit to write.
struct alignas(16) Layout {
  int8_t from[16];
  char text[16];
};
// Index: the number of digits before the point.
constexpr auto kLayouts = [] {
  std::array<Layout, 17> layouts{};
  for (int whole = 0; whole <= 16; ++whole) {
    for (int i = 0; i < 16; ++i) {
      const auto at = static_cast<size_t>(i);
      layouts[static_cast<size_t>(whole)].from[at] = static_cast<int8_t>(i < whole ? i : i == whole ? -128 : i - 1);
      layouts[static_cast<size_t>(whole)].text[at] = i == whole ? '.' : '0';
    }
  }
  return layouts;
}();

// Bit i is set if digit i of 16 is not zero.
inline unsigned nonzero(__m128i digits) noexcept {
  return static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(digits, _mm_setzero_si128()))) ^ 0xffff;
}

// Writes at least one digit on each side of the point. -15 <= exponent <= 0.
inline char* write_plain(char* p, __m128i digits, int exponent) noexcept {
  const unsigned used = nonzero(digits), point = static_cast<unsigned>(16 + exponent);
  const unsigned first = std::min(static_cast<unsigned>(std::countr_zero(used)), point - 1);
  const unsigned end = std::max(static_cast<unsigned>(std::bit_width(used)), point + 1);
  const Layout& layout = kLayouts[point - first];
  // Digit 16 is digit 0 here, a zero: numbers have nine digits.
  const __m128i from = _mm_add_epi8(_mm_load_si128(reinterpret_cast<const __m128i*>(layout.from)),
                                    _mm_set1_epi8(static_cast<char>(first)));
  const __m128i text =
      _mm_xor_si128(_mm_shuffle_epi8(digits, from), _mm_load_si128(reinterpret_cast<const __m128i*>(layout.text)));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), text);
  return p + (end - first) + 1;
}

// Whether std::to_chars writes `count` digits times 10^exponent without an exponent.
bool fits_plain(int count, int exponent) noexcept {
  return count == 1 ? exponent >= -3 && exponent <= 4 : exponent >= -(count + 3) && exponent <= 5;
}

std::atomic<bool> nan_is_null{false};

char* write_token(char* p, bool is_nan) noexcept {
  const std::string_view text = nan_is_null.load(std::memory_order_relaxed) ? "null" : is_nan ? "NaN" : "Infinity";
  std::memcpy(p, text.data(), text.size());
  return p + text.size();
}

// exponent: of the last digit.
char* write_scientific(char* p, const char* digits, int count, int exponent) noexcept {
  *p++ = digits[0];
  if (count > 1) {
    *p++ = '.';
    std::memcpy(p, digits + 1, static_cast<size_t>(count - 1));
    p += count - 1;
  }
  const int power = exponent + count - 1, size = std::abs(power);
  *p++ = 'e';
  *p++ = power < 0 ? '-' : '+';
  if (size < 10) *p++ = '0';
  return std::to_chars(p, p + 3, size).ptr;
}

char* write_large_whole(char* p, double value) noexcept {
  p = std::to_chars(p, p + kFloatRoom, value, std::chars_format::fixed).ptr;
  *p++ = '.';
  *p++ = '0';
  return p;
}

// A float outside 0.001 to 2^24. size: its bits without the sign.
[[gnu::noinline]] char* write_other(char* p, uint32_t size, __m128i digits, int exponent) noexcept {
  if (size >= kInfinity) return write_token(p, size > kInfinity);
  const unsigned used = nonzero(digits);
  const int first = std::countr_zero(used), end = static_cast<int>(std::bit_width(used)), count = end - first;
  const int last = exponent + 16 - end;  // exponent of the last nonzero digit
  if (fits_plain(count, last))
    return size < kMinLarge ? write_plain(p, digits, exponent) : write_large_whole(p, std::bit_cast<float>(size));
  char text[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(text), _mm_or_si128(digits, _mm_set1_epi8('0')));
  return write_scientific(p, text + first, count, last);
}

inline void put_eight(char* p, uint64_t number) noexcept {
  uint64_t v = number / 10000 | (number % 10000) << 32;
  const uint64_t hundreds = (v * 10486) >> 20 & 0x0000007f0000007f;
  v = hundreds | (v - 100 * hundreds) << 16;
  const uint64_t tens = (v * 103) >> 10 & 0x000f000f000f000f;
  v = tens | (v - 10 * tens) << 8 | 0x3030303030303030;
  std::memcpy(p, &v, 8);
}

}  // namespace

void write_nan_as_null(bool on) noexcept { nan_is_null = on; }

char* write_floats(char* p, const float* values, size_t count) noexcept {
  float rest[4] = {1, 1, 1, 1};
  Decimals decimals;
  // Smaller numbers keep their sign.
  const uint32_t signed_below = kInfinity + (nan_is_null.load(std::memory_order_relaxed) ? 0 : 1);
  for (size_t i = 0; i < count; i += 4) {
    const size_t n = std::min<size_t>(count - i, 4);
    const float* four = values + i;
    if (n < 4) four = static_cast<const float*>(std::memcpy(rest, four, n * sizeof(float)));
    shorten(four, decimals);
    for (size_t j = 0; j < n; ++j) {
      const uint32_t size = magnitude(four + j);
      *p = '-';
      p += std::signbit(four[j]) && size < signed_below;
      const bool plain = size - kMinPlain < kMinLarge - kMinPlain || size == 0;
      const __m128i digits = decimals.digits(j);
      p = plain ? write_plain(p, digits, decimals.exponents[j]) : write_other(p, size, digits, decimals.exponents[j]);
      *p++ = ',';
    }
  }
  return p;
}

char* write_double(char* p, double value) noexcept {
  if (std::isnan(value)) [[unlikely]]
    return write_token(p, true);
  const double size = std::fabs(value);
  *p = '-';
  if (std::isinf(size)) [[unlikely]]
    return write_token(p + (std::signbit(value) && !nan_is_null.load(std::memory_order_relaxed)), false);
  p += std::signbit(value);
  if (size < 0x1p53 && std::trunc(size) == size) {
    p = std::to_chars(p, p + kFloatRoom, static_cast<int64_t>(size)).ptr;
    *p++ = '.';
    *p++ = '0';
    return p;
  }
  namespace policy = jkj::dragonbox::policy;
  const auto decimal = jkj::dragonbox::to_decimal(size, policy::sign::ignore, policy::trailing_zero::remove);
  const uint64_t number = decimal.significand;
  const size_t about = static_cast<size_t>(std::bit_width(number) * 1233 >> 12);
  const int count = static_cast<int>(about + (number >= kPow10U[about]));

  constexpr int kDigits = 24;
  char digits[kDigits + 24];  // and room for copies of whole blocks
  put_eight(digits, number / kPow10U[16]);
  put_eight(digits + 8, number / kPow10U[8] % kPow10U[8]);
  put_eight(digits + 16, number % kPow10U[8]);
  const char* const first = digits + kDigits - count;
  if (!fits_plain(count, decimal.exponent)) return write_scientific(p, first, count, decimal.exponent);
  if (decimal.exponent >= 0) return write_large_whole(p, size);
  const char* const point = digits + kDigits + decimal.exponent;
  const char* const start = std::min(first, point - 1);
  std::memcpy(p, start, 16);
  p += point - start;
  *p++ = '.';
  std::memcpy(p, point, 24);
  return p - decimal.exponent;
}

}  // namespace sconce::server
