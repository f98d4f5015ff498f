#include "package_format/wrapper/rows/tokens.h"

#include <algorithm>

#include "package_format/text/source_text.h"

namespace sconce::rows {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// "1L", "0.5", "1e-06", "0x1p3f", "1'000"
size_t number_length(std::string_view text) noexcept {
  size_t length = 1;
  const bool hexadecimal = text.starts_with("0x");
  while (length < text.size()) {
    const char c = text[length], last = text[length - 1];
    const bool exponent = (hexadecimal ? last == 'p' || last == 'P' : last == 'e' || last == 'E');
    if (!is_word(c) && c != '.' && !((c == '+' || c == '-') && exponent)) break;
    ++length;
  }
  return length;
}

// The text after "Original ATen: " in a comment: "[aten.mm]" without brackets.
std::string_view origin_in(std::string_view comment, std::string_view before) {
  constexpr std::string_view kMark = "Original ATen: [";
  const size_t at = find_text(comment, kMark);
  if (at == std::string_view::npos) return before;
  comment.remove_prefix(at + kMark.size());
  return comment.substr(0, comment.find(']'));
}

}  // namespace

std::vector<Token> tokens_of(std::string_view text) {
  static constexpr std::string_view kMarks[] = {"<<=", ">>=", "...", "::", "->", "++", "--", "+=", "-=", "*=", "/=",
                                                "%=",  "&=",  "|=",  "^=", "&&", "||", "==", "!=", "<=", ">=", "<<"};
  std::vector<Token> tokens;
  std::string_view origin;
  bool line_start = true;
  while (!text.empty()) {
    const char c = text.front();
    size_t length = 1;
    TokenKind kind = TokenKind::kMark;
    if (c == '\n') {
      line_start = true;
      text.remove_prefix(1);
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\r') {
      text.remove_prefix(1);
      continue;
    }
    if (text.starts_with("//") || (c == '#' && line_start)) {
      const std::string_view line = text.substr(0, text.find('\n'));
      if (c == '/') origin = origin_in(line, origin);
      text.remove_prefix(line.size());
      continue;
    }
    if (text.starts_with("/*")) {
      const size_t end = find_text(text, "*/", 2);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
      continue;
    }
    line_start = false;
    if (is_digit(c) || (c == '.' && text.size() > 1 && is_digit(text[1]))) {
      kind = TokenKind::kNumber;
      length = number_length(text);
    } else if (is_word(c)) {
      kind = TokenKind::kWord;
      while (length < text.size() && is_word(text[length])) ++length;
    } else if (c == '"' || c == '\'') {
      kind = TokenKind::kString;
      length = literal_length(text);
    } else {
      const auto* mark = std::find_if(std::begin(kMarks), std::end(kMarks), [&](std::string_view each) {
        return text.size() > 1 && text[0] == each[0] && text[1] == each[1] && text.starts_with(each);
      });
      if (mark != std::end(kMarks)) length = mark->size();
    }
    tokens.push_back({kind, text.substr(0, length), origin});
    text.remove_prefix(length);
  }
  tokens.push_back({TokenKind::kEnd, text, origin});
  return tokens;
}

}  // namespace sconce::rows
