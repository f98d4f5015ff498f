#include "package_format/crc32.h"

#include <emmintrin.h>
#include <wmmintrin.h>
#include <zlib.h>

#include <algorithm>
#include <climits>

namespace sconce {
namespace {

// zlib counts in unsigned int.
uint32_t by_tables(const std::byte* data, size_t size, uint32_t crc) noexcept {
  while (size != 0) {
    const auto part = static_cast<uInt>(std::min<size_t>(size, 1u << 30));
    crc = static_cast<uint32_t>(::crc32(crc, reinterpret_cast<const Bytef*>(data), part));
    data += part;
    size -= part;
  }
  return crc;
}

// x^exponent mod P, bits reflected, in the 33-bit position in which a reflected product comes out.
constexpr int64_t power(int exponent) {
  uint32_t value = 1;
  for (int i = 0; i < exponent; ++i) value = (value << 1) ^ (value & 0x80000000u ? 0x04c11db7u : 0u);
  uint64_t reflected = 0;
  for (int bit = 0; bit < 32; ++bit) reflected |= static_cast<uint64_t>(value >> bit & 1) << (31 - bit);
  return static_cast<int64_t>(reflected << 1);
}

#define SCONCE_CLMUL [[gnu::target("pclmul,sse4.1")]]

// The remainder `acc`, moved on by the distance that `factors` stands for, plus the bytes found there.
SCONCE_CLMUL inline __m128i fold(__m128i acc, __m128i factors, __m128i next) noexcept {
  return _mm_xor_si128(
      next, _mm_xor_si128(_mm_clmulepi64_si128(acc, factors, 0x00), _mm_clmulepi64_si128(acc, factors, 0x11)));
}

SCONCE_CLMUL inline __m128i load(const std::byte* at) noexcept {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

// Folds the data, 64 bytes at a time, to 16 bytes of equal remainder, which the tables finish. size >= 64.
SCONCE_CLMUL uint32_t by_folding(const std::byte* data, size_t size, uint32_t crc) noexcept {
  const __m128i by_64 = _mm_set_epi64x(power(4 * 128 - 32), power(4 * 128 + 32));
  const __m128i by_16 = _mm_set_epi64x(power(128 - 32), power(128 + 32));
  __m128i a = _mm_xor_si128(load(data), _mm_cvtsi32_si128(static_cast<int>(~crc)));
  __m128i b = load(data + 16), c = load(data + 32), d = load(data + 48);
  for (data += 64, size -= 64; size >= 64; data += 64, size -= 64) {
    a = fold(a, by_64, load(data));
    b = fold(b, by_64, load(data + 16));
    c = fold(c, by_64, load(data + 32));
    d = fold(d, by_64, load(data + 48));
  }
  a = fold(fold(fold(a, by_16, b), by_16, c), by_16, d);
  for (; size >= 16; data += 16, size -= 16) a = fold(a, by_16, load(data));
  alignas(16) std::byte rest[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(rest), a);
  return by_tables(data, size, by_tables(rest, sizeof rest, ~0u));  // ~0u: an empty register, zlib inverts it
}

}  // namespace

uint32_t crc32(std::span<const std::byte> bytes, uint32_t crc) noexcept {
  static const bool folds = __builtin_cpu_supports("pclmul");
  return folds && bytes.size() >= 64 ? by_folding(bytes.data(), bytes.size(), crc)
                                     : by_tables(bytes.data(), bytes.size(), crc);
}

}  // namespace sconce
