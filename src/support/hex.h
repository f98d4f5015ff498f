// Hexadecimal digits. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace sconce {

// The value of the digit, in either case; -1 for another character.
constexpr int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Decodes 64 digits; nullopt for other text.
constexpr std::optional<std::array<std::byte, 32>> sha256_from_hex(std::string_view text) noexcept {
  std::array<std::byte, 32> bytes{};
  if (text.size() != 2 * bytes.size()) return std::nullopt;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<std::byte>(high * 16 + low);
  }
  return bytes;
}

}  // namespace sconce
