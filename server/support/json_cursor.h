// JsonCursor: a pull parser that reads JSON text in place. RFC 8259, plus the tokens NaN, Infinity and -Infinity where
// a number is read as a float.
//
// Allocates only for strings with escapes, at most twice the bytes of the text. Limits nesting and does not recurse.
// All errors are kInvalidArgument and name the byte offset. Used by one thread; views point into the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <forward_list>
#include <string>
#include <string_view>
#include <vector>

namespace sconce::server {

class JsonCursor {
 public:
  static constexpr int kMaxDepth = 100;

  explicit JsonCursor(std::string_view text) noexcept : begin_(text.data()), p_(begin_), end_(begin_ + text.size()) {}

  // First character of the next value or separator, after whitespace; '\0' at the end of the text.
  char peek() noexcept {
    skip_whitespace();
    return p_ == end_ ? '\0' : *p_;
  }
  // Later errors name this context: "input 'x'". The view must stay valid while it is set.
  void set_context(std::string_view context) noexcept { context_ = context; }
  size_t offset() const noexcept { return static_cast<size_t>(p_ - begin_); }
  void seek(size_t offset) noexcept { p_ = begin_ + offset; }
  const char* position() const noexcept { return p_; }
  const char* end() const noexcept { return end_; }
  void set_position(const char* p) noexcept { p_ = p; }

  // Calls member(key) for each member with the cursor at its value, which `member` must consume. Errors call the object
  // `what`. The key is a view of the text; if it has escapes, it lives until `member` returns.
  template <class F>
  void object(std::string_view what, F&& member) {
    each('{', what, [&](size_t) {
      const std::string_view name = key();
      expect(':');
      member(name);
    });
  }
  // Likewise, but skips members that are null, because many serialisers write null for absent members.
  template <class F>
  void members(std::string_view what, F&& member) {
    object(what, [&](std::string_view name) {
      if (peek() != 'n' || !consume_null()) member(name);
    });
  }
  // Calls element(index) for each element with the cursor at the element.
  template <class F>
  void array(std::string_view what, F&& element) {
    each('[', what, element);
  }

  // Reads a request whose whole text is one object, with member(cursor, key).
  template <class F>
  static void read_request(std::string_view text, F&& member) {
    JsonCursor json(text);
    json.object("the request", [&](std::string_view key) { member(json, key); });
    json.finish();
  }

  // A view of the text; for a string with escapes, a view that lives as long as the cursor.
  std::string_view string(std::string_view what);
  // The string verbatim, with quotes and escapes.
  std::string_view raw_string(std::string_view what);
  uint64_t unsigned_integer(std::string_view what);
  bool boolean(std::string_view what);
  double number(std::string_view what);
  bool consume_null();

  // Validates and skips one value; returns its text.
  std::string_view skip();
  // Skips an array or object that is parsed later; checks only brackets and strings.
  std::string_view skip_unchecked();
  // Throws unless only whitespace follows.
  void finish();

  [[noreturn, gnu::cold, gnu::noinline]] void fail(std::string_view problem) const;
  [[noreturn, gnu::cold, gnu::noinline]] void fail_expected(std::string_view what, std::string_view kind) const;

 private:
  void skip_whitespace() noexcept {
    while (p_ != end_ && (*p_ == ' ' || *p_ == '\n' || *p_ == '\r' || *p_ == '\t')) ++p_;
  }
  void expect(char c) {
    if (peek() != c) fail(c == ':' ? "expected ':'" : "malformed text");
    ++p_;
  }
  // Calls visit(index) for each member or element.
  template <class F>
  void each(char bracket, std::string_view what, F&& visit) {
    const bool object = bracket == '{';
    const char end = object ? '}' : ']';
    if (peek() != bracket) fail_expected(what, object ? "an object" : "an array");
    if (++depth_ > kMaxDepth) fail("nested deeper than 100 levels");
    ++p_;
    if (peek() != end) {
      for (size_t i = 0;; ++i, ++p_) {
        visit(i);
        if (peek() != ',') break;
      }
      if (peek() != end) fail(object ? "expected ',' or '}'" : "expected ',' or ']'");
    }
    --depth_;
    ++p_;
  }
  std::string_view key();
  std::string_view string_token(bool& escaped);
  std::string unescape(std::string_view token) const;
  void skip_number();
  void skip_literal(std::string_view literal);

  const char* begin_;
  const char* p_;
  const char* end_;
  int depth_ = 0;
  std::string_view context_;
  std::vector<std::string> keys_;        // keys with escapes: the current key of each level
  std::forward_list<std::string> kept_;  // values with escapes; a list, so that they do not move
};

// Appends text as a JSON string with quotes. Bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

// kInvalidArgument: "unknown member 'KEY' of WHAT".
[[noreturn]] void fail_member(std::string_view what, std::string_view key);

}  // namespace sconce::server
