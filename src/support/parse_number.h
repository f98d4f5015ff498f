// parse_number: reads a number from text of a client, a file or the command line. Pure function.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace sconce {

// Returns the decimal number that is the whole text. nullopt for any other text (blanks, '+' or a unit included) and
// for a number outside the range of T.
template <class T>
std::optional<T> parse_number(std::string_view text) noexcept {
  T value{};
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace sconce
