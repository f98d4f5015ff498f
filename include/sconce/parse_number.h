// parse_number: the number that a text from outside is. Pure function.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace sconce {

// In decimal. nullopt if T cannot hold it, and if the text has anything else: blanks, '+', a unit.
template <class T>
std::optional<T> parse_number(std::string_view text) noexcept {
  T value{};
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace sconce
