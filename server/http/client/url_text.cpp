#include "server/http/client/url_text.h"

#include <charconv>
#include <system_error>

#include "src/support/hex.h"

namespace sconce::server::http {
namespace {

std::string percent_encoded(std::string_view text, std::string_view besides) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~").find(c) != std::string_view::npos;
    if (plain || besides.find(c) != std::string_view::npos) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

}  // namespace

std::string encoded_path(std::string_view path) { return percent_encoded(path, "/"); }
std::string encoded_value(std::string_view value) { return percent_encoded(value, {}); }

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
      out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::optional<std::string> decoded_form(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    unsigned byte = 0;
    const char* const begin = text.data() + i + 1;
    if (i + 2 >= text.size()) return std::nullopt;
    if (const auto [end, problem] = std::from_chars(begin, begin + 2, byte, 16);
        problem != std::errc() || end != begin + 2)
      return std::nullopt;
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

bool is_plain_loopback(std::string_view url) noexcept {
  if (!url.starts_with("http://")) return false;
  const std::string_view authority = authority_of(url);
  if (authority.find('@') != std::string_view::npos) return false;
  const std::string_view host = authority.starts_with('[') ? authority.substr(0, authority.find(']') + 1)
                                                           : authority.substr(0, authority.find(':'));
  return host == "127.0.0.1" || host == "localhost" || host == "[::1]";
}

std::string_view origin_of(std::string_view url) noexcept {
  const size_t begin = url.find("://");
  return url.substr(0, url.find_first_of("/?#", begin == std::string_view::npos ? 0 : begin + 3));
}

std::string_view authority_of(std::string_view url) noexcept {
  const std::string_view origin = origin_of(url);
  const size_t begin = origin.find("://");
  return begin == std::string_view::npos ? origin : origin.substr(begin + 3);
}

}  // namespace sconce::server::http
