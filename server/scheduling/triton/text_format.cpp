#include "server/scheduling/triton/text_format.h"

#include <cstdint>
#include <utility>

#include "sconce/check.h"
#include "src/support/excerpt.h"

namespace sconce::server::scheduling {
namespace {

constexpr int kMaxNesting = 32;
constexpr size_t kMaxBytes = 1 << 20, kMaxFields = 65536;

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool in_word(char c) noexcept { return is_letter(c) || is_digit(c) || c == '.' || c == '+' || c == '-'; }

int hex_value(char c) noexcept {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr uint32_t kFirst[] = {0, 0xc0, 0xe0, 0xf0};
  out += static_cast<char>(kFirst[more] | code >> (6 * more));
  for (int i = more; i-- > 0;) out += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
}

class TextFormatReader {
 public:
  explicit TextFormatReader(std::string_view text) : rest_(text) {
    SCONCE_CHECK(text.size() <= kMaxBytes, kInvalidArgument, "the text has ", text.size(), " bytes, at most ",
                 kMaxBytes, " are read");
  }

  TextMessage all() {
    TextMessage message;
    read_fields('\0', message);
    return message;
  }

 private:
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    SCONCE_FAIL(kInvalidArgument, "line ", line_, ": ", parts...);
  }

  // The next character after blanks and comments; '\0' at the end.
  char peek() {
    while (!rest_.empty()) {
      const char c = rest_.front();
      if (c == '#') {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f') {
        take();
      } else {
        if (c == '\0') fail("a NUL byte");
        return c;
      }
    }
    return '\0';
  }
  char take() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    line_ += c == '\n';
    return c;
  }
  bool consume(char c) {
    if (peek() != c) return false;
    take();
    return true;
  }

  // Reads fields up to the closing bracket; '\0': up to the end of the text.
  void read_fields(char end, TextMessage& message) {
    if (++depth_ > kMaxNesting) fail("messages are nested deeper than ", kMaxNesting, " levels");
    const int opened = line_;
    for (;;) {
      const char c = peek();
      if (c == end) break;
      if (c == '\0') fail("a message that began at line ", opened, " is not closed");
      read_field(message);
      if (!consume(',')) consume(';');
    }
    if (end != '\0') take();
    --depth_;
  }

  void read_field(TextMessage& message) {
    TextField field;
    field.line = line_;
    field.name = read_name();
    const bool colon = consume(':');
    if (!consume('[')) {
      read_value(std::move(field), colon, message);
      return;
    }
    if (consume(']')) return;
    do {
      TextField element;
      element.line = line_;
      element.name = field.name;
      read_value(std::move(element), colon, message);
    } while (consume(','));
    if (!consume(']')) fail("expected ',' or ']' in the list '", excerpt(field.name), "'");
  }

  std::string read_name() {
    const char c = peek();
    if (c == '[') {
      const size_t end = rest_.find_first_of("]\n");
      if (end == std::string_view::npos || rest_[end] != ']') fail("an extension's name is not closed");
      std::string name(rest_.substr(0, end + 1));
      rest_.remove_prefix(end + 1);
      return name;
    }
    if (!is_letter(c)) fail("expected a field's name, got '", excerpt(std::string(1, c)), "'");
    size_t end = 0;
    while (end < rest_.size() && (is_letter(rest_[end]) || is_digit(rest_[end]))) ++end;
    std::string name(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return name;
  }

  void read_value(TextField field, bool colon, TextMessage& message) {
    if (++fields_ > kMaxFields) fail("more than ", kMaxFields, " fields");
    const char c = peek();
    if (c == '{' || c == '<') {
      take();
      field.kind = TextField::Kind::kMessage;
      read_fields(c == '{' ? '}' : '>', field.message);
    } else if (!colon) {
      fail("expected ':' or '{' after '", excerpt(field.name), "'");
    } else if (c == '"' || c == '\'') {
      field.kind = TextField::Kind::kString;
      // Adjacent strings are concatenated.
      while (peek() == '"' || peek() == '\'') read_string(field.text);
    } else {
      field.text = read_word(field.name);
    }
    message.fields.push_back(std::move(field));
  }

  std::string read_word(const std::string& name) {
    std::string word;
    // Blanks may follow a sign.
    if (consume('-')) {
      word = "-";
      peek();
    }
    size_t end = 0;
    while (end < rest_.size() && in_word(rest_[end])) ++end;
    if (end == 0) fail("expected a value of '", excerpt(name), "'");
    word += rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }

  void read_string(std::string& out) {
    const char quote = take();
    for (;;) {
      if (rest_.empty() || rest_.front() == '\n') fail("a string is not closed");
      const char c = take();
      if (c == quote) return;
      if (c == '\\') {
        read_escape(out);
      } else {
        out += c;
      }
    }
  }

  uint32_t read_digits(int base, size_t most) {
    uint32_t value = 0;
    size_t count = 0;
    for (; count < most && !rest_.empty(); ++count) {
      const int digit = hex_value(rest_.front());
      if (digit < 0 || digit >= base) break;
      value = value * static_cast<uint32_t>(base) + static_cast<uint32_t>(digit);
      take();
    }
    if (count == 0 || (base == 16 && most > 2 && count < most)) fail("an escape lacks digits");
    return value;
  }

  void read_escape(std::string& out) {
    if (rest_.empty()) fail("a string is not closed");
    const char c = rest_.front();
    if (c >= '0' && c <= '7') {
      const uint32_t value = read_digits(8, 3);
      if (value > 0xff) fail("an octal escape is more than \\377");
      out += static_cast<char>(value);
      return;
    }
    take();
    constexpr std::string_view kNames = "abfnrtv\\'\"?", kValues = "\a\b\f\n\r\t\v\\'\"?";
    if (const size_t at = kNames.find(c); at != std::string_view::npos) {
      out += kValues[at];
    } else if (c == 'x' || c == 'X') {
      out += static_cast<char>(read_digits(16, 2));
    } else if (c == 'u' || c == 'U') {
      const uint32_t code = read_digits(16, c == 'u' ? 4 : 8);
      if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) fail("an escape is no Unicode character");
      append_utf8(out, code);
    } else {
      fail("unknown escape '\\", excerpt(std::string(1, c)), "'");
    }
  }

  std::string_view rest_;
  int line_ = 1;
  int depth_ = 0;
  size_t fields_ = 0;
};

}  // namespace

TextMessage parse_text_format(std::string_view text) { return TextFormatReader(text).all(); }

}  // namespace sconce::server::scheduling
