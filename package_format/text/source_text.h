// Reads generated C++ line by line. Results are views of the caller's text.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace sconce {

// Like text.find(mark, from), but several times faster on long texts.
inline size_t find_text(std::string_view text, std::string_view mark, size_t from = 0) noexcept {
  if (from >= text.size()) return std::string_view::npos;
  const void* at = ::memmem(text.data() + from, text.size() - from, mark.data(), mark.size());
  return at == nullptr ? std::string_view::npos : static_cast<size_t>(static_cast<const char*>(at) - text.data());
}

inline std::string_view trim(std::string_view text) noexcept {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Removes `prefix` from the front. Returns false, and removes nothing, if the text does not start with it.
inline bool skip(std::string_view& text, std::string_view prefix) noexcept {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Removes and returns the text before `stop`, and removes `stop`. nullopt, and nothing removed, if there is none.
inline std::optional<std::string_view> skip_to(std::string_view& text, std::string_view stop) noexcept {
  const size_t at = find_text(text, stop);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view before = text.substr(0, at);
  text.remove_prefix(at + stop.size());
  return before;
}

inline std::optional<int64_t> skip_integer(std::string_view& text) noexcept {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

inline bool is_word(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

inline std::string_view skip_word(std::string_view& text) noexcept {
  size_t length = 0;
  while (length < text.size() && is_word(text[length])) ++length;
  const std::string_view word = text.substr(0, length);
  text.remove_prefix(length);
  return word;
}

// Removes and returns the next line without blanks around it; nullopt at the end.
inline std::optional<std::string_view> skip_line(std::string_view& text) noexcept {
  if (text.empty()) return std::nullopt;
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return trim(line);
}

// Removes and returns one C++ string value: adjacent literals, plain (with escapes) or raw. nullopt if there is no
// literal or one does not end.
std::optional<std::string> skip_string(std::string_view& text);

// The length of the literal, in ' or ", at the front of `text`; the length of the text if the literal is not closed.
size_t literal_length(std::string_view text) noexcept;

}  // namespace sconce
