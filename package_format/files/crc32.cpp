#include "package_format/files/crc32.h"

#include <immintrin.h>

#include <array>

namespace sconce {
namespace {

constexpr uint32_t kPolynomial = 0xedb88320u;  // bits reflected

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? kPolynomial : 0u);
    table[i] = value;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = make_table();

// Byte by byte, for short data and for processors without carry-less multiplication. `state` is the inverted CRC.
uint32_t by_table(const std::byte* data, size_t size, uint32_t state) noexcept {
  for (const std::byte* const end = data + size; data != end; ++data)
    state = (state >> 8) ^ kTable[(state ^ static_cast<uint32_t>(*data)) & 0xff];
  return state;
}

// x^exponent mod P with bits reflected, in the 33-bit position of a reflected product.
constexpr int64_t power(int exponent) {
  uint32_t value = 1;
  for (int i = 0; i < exponent; ++i) value = (value << 1) ^ (value & 0x80000000u ? 0x04c11db7u : 0u);
  uint64_t reflected = 0;
  for (int bit = 0; bit < 32; ++bit) reflected |= static_cast<uint64_t>(value >> bit & 1) << (31 - bit);
  return static_cast<int64_t>(reflected << 1);
}

#define SCONCE_CLMUL [[gnu::target("pclmul,sse4.1")]]
#define SCONCE_WIDE_CLMUL [[gnu::target("avx512f,avx512vl,vpclmulqdq,pclmul")]]

// Factors that move a remainder forward by a number of bytes.
template <int Bytes>
SCONCE_CLMUL inline __m128i factors() noexcept {
  constexpr int64_t high = power(8 * Bytes - 32), low = power(8 * Bytes + 32);
  return _mm_set_epi64x(high, low);
}

template <int Bytes>
SCONCE_WIDE_CLMUL inline __m512i wide_factors() noexcept {
  constexpr int64_t high = power(8 * Bytes - 32), low = power(8 * Bytes + 32);
  return _mm512_set_epi64(high, low, high, low, high, low, high, low);
}

// Moves the remainder `acc` forward by the distance of `factors` and adds the bytes there.
SCONCE_CLMUL inline __m128i fold(__m128i acc, __m128i factors, __m128i next) noexcept {
  return _mm_xor_si128(
      next, _mm_xor_si128(_mm_clmulepi64_si128(acc, factors, 0x00), _mm_clmulepi64_si128(acc, factors, 0x11)));
}
SCONCE_WIDE_CLMUL inline __m512i fold(__m512i acc, __m512i factors, __m512i next) noexcept {
  constexpr int kXorOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(acc, factors, 0x00),
                                   _mm512_clmulepi64_epi128(acc, factors, 0x11), next, kXorOfThree);
}

SCONCE_CLMUL inline __m128i load(const std::byte* at) noexcept {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}
SCONCE_WIDE_CLMUL inline __m512i load_wide(const std::byte* at) noexcept { return _mm512_loadu_si512(at); }

// Reduces four blocks of remainder and the bytes after them to 16 bytes with the same remainder; the table does the
// rest.
SCONCE_CLMUL inline uint32_t finish(__m128i a, __m128i b, __m128i c, __m128i d, const std::byte* data,
                                    size_t size) noexcept {
  const __m128i by_16 = factors<16>();
  a = fold(fold(fold(a, by_16, b), by_16, c), by_16, d);
  for (; size >= 16; data += 16, size -= 16) a = fold(a, by_16, load(data));
  alignas(16) std::byte rest[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(rest), a);
  return by_table(data, size, by_table(rest, sizeof rest, 0));
}

// Folds 64 bytes at a time. size >= 64.
SCONCE_CLMUL uint32_t by_folding(const std::byte* data, size_t size, uint32_t state) noexcept {
  const __m128i by_64 = factors<64>();
  __m128i a = _mm_xor_si128(load(data), _mm_cvtsi32_si128(static_cast<int>(state)));
  __m128i b = load(data + 16), c = load(data + 32), d = load(data + 48);
  for (data += 64, size -= 64; size >= 64; data += 64, size -= 64) {
    a = fold(a, by_64, load(data));
    b = fold(b, by_64, load(data + 16));
    c = fold(c, by_64, load(data + 32));
    d = fold(d, by_64, load(data + 48));
  }
  return finish(a, b, c, d, data, size);
}

// Folds 256 bytes at a time. size >= 256.
SCONCE_WIDE_CLMUL uint32_t by_wide_folding(const std::byte* data, size_t size, uint32_t state) noexcept {
  const __m512i by_256 = wide_factors<256>(), by_64 = wide_factors<64>();
  __m512i a = _mm512_xor_si512(load_wide(data), _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state))));
  __m512i b = load_wide(data + 64), c = load_wide(data + 128), d = load_wide(data + 192);
  for (data += 256, size -= 256; size >= 256; data += 256, size -= 256) {
    a = fold(a, by_256, load_wide(data));
    b = fold(b, by_256, load_wide(data + 64));
    c = fold(c, by_256, load_wide(data + 128));
    d = fold(d, by_256, load_wide(data + 192));
  }
  a = fold(fold(fold(a, by_64, b), by_64, c), by_64, d);
  for (; size >= 64; data += 64, size -= 64) a = fold(a, by_64, load_wide(data));
  alignas(64) std::byte blocks[64];
  _mm512_store_si512(blocks, a);
  return finish(load(blocks), load(blocks + 16), load(blocks + 32), load(blocks + 48), data, size);
}

}  // namespace

uint32_t crc32(std::span<const std::byte> bytes, uint32_t crc) noexcept {
  static const bool folds = __builtin_cpu_supports("pclmul");
  static const bool folds_wide = folds && __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512vl");
  const auto by = folds_wide && bytes.size() >= 256 ? by_wide_folding
                  : folds && bytes.size() >= 64     ? by_folding
                                                    : by_table;
  return ~by(bytes.data(), bytes.size(), ~crc);
}

}  // namespace sconce
