// UTF-8, byte by byte. Pure functions.
#pragma once

#include <cstddef>

namespace sconce {

// Length of the UTF-8 sequence at p; 0 for overlong forms, surrogates, values above U+10FFFF and other bytes.
inline size_t utf8_length(const char* p, const char* end) noexcept {
  const auto byte = [&](ptrdiff_t i) { return static_cast<unsigned char>(p[i]); };
  const auto tail = [&](ptrdiff_t i) { return end - p > i && (byte(i) & 0xc0) == 0x80; };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return tail(1) ? 2 : 0;
  if (lead >= 0xe0 && lead < 0xf0) {
    if (!tail(1) || !tail(2)) return 0;
    if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) >= 0xa0)) return 0;
    return 3;
  }
  if (lead >= 0xf0 && lead < 0xf5) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if ((lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) >= 0x90)) return 0;
    return 4;
  }
  return 0;
}

}  // namespace sconce
