// Trims text and splits lists. blanks: HTTP's by default.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sconce::server {

inline std::string_view trim(std::string_view text, std::string_view blanks = " \t") noexcept {
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// The trimmed parts between separators, without empty parts.
inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    const std::string_view part = trim(text.substr(0, end), " \t\r\n");
    if (!part.empty()) parts.emplace_back(part);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

}  // namespace sconce::server
