// Text without the characters of `blanks` at its ends; those of HTTP's fields unless told.
#pragma once

#include <string_view>

namespace sconce {

inline std::string_view trim(std::string_view text, std::string_view blanks = " \t") noexcept {
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace sconce
