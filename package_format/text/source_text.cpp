#include "package_format/text/source_text.h"

#include <algorithm>

namespace sconce {
namespace {

// The character of an escape sequence; `text` starts after the backslash.
std::optional<char> skip_escape(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  const char c = text.front();
  text.remove_prefix(1);
  constexpr std::string_view kEscapes = "ntrabfv\\\"'?", kMeanings = "\n\t\r\a\b\f\v\\\"'?";
  if (const size_t at = kEscapes.find(c); at != std::string_view::npos) return kMeanings[at];
  const bool hex = c == 'x';
  if (!hex && (c < '0' || c > '7')) return std::nullopt;
  const char* begin = hex ? text.data() : text.data() - 1;
  const char* end = text.data() + text.size();
  if (!hex) end = std::min(end, begin + 3);
  unsigned value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value, hex ? 16 : 8);
  if (error != std::errc() || value > 255) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(stop - text.data()));
  return static_cast<char>(value);
}

bool skip_plain(std::string_view& text, std::string& value) {
  while (!text.empty() && text.front() != '"') {
    const size_t run = std::min(text.find_first_of("\\\""), text.size());
    value.append(text.substr(0, run));
    text.remove_prefix(run);
    if (!skip(text, "\\")) continue;
    const std::optional<char> c = skip_escape(text);
    if (!c) return false;
    value.push_back(*c);
  }
  return skip(text, "\"");
}

bool skip_raw(std::string_view& text, std::string& value) {
  const auto delimiter = skip_to(text, "(");
  if (!delimiter || delimiter->size() > 16) return false;
  std::string end(1, ')');
  end.append(*delimiter).push_back('"');
  const auto content = skip_to(text, end);
  if (content) value.append(*content);
  return content.has_value();
}

}  // namespace

std::optional<std::string> skip_string(std::string_view& text) {
  std::optional<std::string> value;
  std::string_view rest = text;
  for (;;) {
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
    const bool raw = rest.starts_with("R\"");
    if (!raw && !rest.starts_with('"')) return value;
    if (!value) value.emplace();
    rest.remove_prefix(raw ? 2 : 1);
    if (!(raw ? skip_raw(rest, *value) : skip_plain(rest, *value))) return std::nullopt;
    text = rest;
  }
}

size_t literal_length(std::string_view text) noexcept {
  const char quote = text.front();
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      return i + 1;
    }
  }
  return text.size();
}

}  // namespace sconce
