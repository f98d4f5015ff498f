#include "server/support/json/base64.h"

#include <array>
#include <cstdint>

namespace sconce::server {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<uint8_t, 256> make_values() noexcept {
  std::array<uint8_t, 256> values{};
  for (uint8_t& value : values) value = 0xff;
  for (size_t i = 0; i < kAlphabet.size(); ++i)
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<uint8_t>(i);
  return values;
}
constexpr std::array<uint8_t, 256> kValues = make_values();

}  // namespace

std::optional<size_t> decode_base64(std::string_view text, std::byte* out) noexcept {
  if (text.size() % 4 != 0) return std::nullopt;
  if (text.empty()) return 0;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  std::byte* const start = out;
  const auto value = [](unsigned char c) { return static_cast<uint32_t>(kValues[c]); };
  uint32_t bad = 0;
  for (const auto* const end = p + text.size() - (padding != 0 ? 4 : 0); p != end; p += 4) {
    const uint32_t a = value(p[0]), b = value(p[1]), c = value(p[2]), d = value(p[3]);
    bad |= a | b | c | d;
    const uint32_t bits = a << 18 | b << 12 | c << 6 | d;
    *out++ = static_cast<std::byte>(bits >> 16);
    *out++ = static_cast<std::byte>(bits >> 8);
    *out++ = static_cast<std::byte>(bits);
  }
  if (padding != 0) {
    const uint32_t a = value(p[0]), b = value(p[1]), c = padding == 1 ? value(p[2]) : 0;
    bad |= a | b | c;
    if ((padding == 1 ? c & 3 : b & 15) != 0) return std::nullopt;
    const uint32_t bits = a << 18 | b << 12 | c << 6;
    *out++ = static_cast<std::byte>(bits >> 16);
    if (padding == 1) *out++ = static_cast<std::byte>(bits >> 8);
  }
  if (bad > 63) return std::nullopt;
  return static_cast<size_t>(out - start);
}

std::optional<std::string> decode_base64(std::string_view text) {
  std::string bytes(base64_decoded_bound(text.size()), '\0');
  const std::optional<size_t> size = decode_base64(text, reinterpret_cast<std::byte*>(bytes.data()));
  if (!size) return std::nullopt;
  bytes.resize(*size);
  return bytes;
}

void append_base64(TextBuffer& out, const std::byte* data, size_t bytes) {
  char* p = out.reserve((bytes + 2) / 3 * 4);
  const auto byte = [&](size_t i) { return std::to_integer<uint32_t>(data[i]); };
  size_t i = 0;
  for (; i + 3 <= bytes; i += 3) {
    const uint32_t bits = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    *p++ = kAlphabet[bits >> 18];
    *p++ = kAlphabet[bits >> 12 & 63];
    *p++ = kAlphabet[bits >> 6 & 63];
    *p++ = kAlphabet[bits & 63];
  }
  if (i < bytes) {
    const bool two = i + 2 == bytes;
    const uint32_t bits = byte(i) << 16 | (two ? byte(i + 1) << 8 : 0);
    *p++ = kAlphabet[bits >> 18];
    *p++ = kAlphabet[bits >> 12 & 63];
    *p++ = two ? kAlphabet[bits >> 6 & 63] : '=';
    *p++ = '=';
  }
  out.commit(p);
}

}  // namespace sconce::server
