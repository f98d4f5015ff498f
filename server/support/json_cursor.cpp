#include "server/support/json_cursor.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdio>

#include "sconce/check.h"
#include "src/support/excerpt.h"
#include "src/support/utf8.h"

namespace sconce::server {
namespace {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

// The value of four hexadecimal digits; -1 if one is missing.
int32_t hex4(const char* p) noexcept {
  int32_t value = 0;
  const auto [end, ec] = std::from_chars(p, p + 4, value, 16);
  return ec == std::errc() && end == p + 4 && *p != '-' ? value : -1;
}

}  // namespace

void JsonCursor::fail(std::string_view problem) const {
  SCONCE_FAIL(kInvalidArgument, "JSON: ", context_, context_.empty() ? "" : ": ", problem,
              p_ == end_ ? ", text ends" : "", " at byte ", offset());
}

void JsonCursor::fail_expected(std::string_view what, std::string_view kind) const {
  fail(std::string(what) + " must be " + std::string(kind));
}

std::string_view JsonCursor::string_token(bool& escaped) {
  const char* start = ++p_;
  escaped = false;
  // Skips ordinary characters, sixteen bytes at a time; most strings end in the first block.
  for (constexpr ptrdiff_t kBlock = sizeof(__m128i); end_ - p_ >= kBlock; p_ += kBlock) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p_));
    // As signed numbers, non-ASCII bytes are less than a space too.
    const __m128i special = _mm_or_si128(
        _mm_cmplt_epi8(block, _mm_set1_epi8(' ')),
        _mm_or_si128(_mm_cmpeq_epi8(block, _mm_set1_epi8('"')), _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'))));
    if (const auto found = static_cast<unsigned>(_mm_movemask_epi8(special)); found != 0) {
      p_ += std::countr_zero(found);
      break;
    }
  }
  for (; p_ != end_; ++p_) {
    const unsigned char c = static_cast<unsigned char>(*p_);
    if (c == '"') {
      ++p_;
      return {start, static_cast<size_t>(p_ - start - 1)};
    }
    if (c < 0x20) fail("control character in a string");
    if (c == '\\') {
      escaped = true;
      if (++p_ == end_) break;
      if (*p_ == 'u') {
        if (end_ - p_ < 5 || hex4(p_ + 1) < 0) fail("\\u needs four hexadecimal digits");
        p_ += 4;
      } else if (std::string_view("\"\\/bfnrt").find(*p_) == std::string_view::npos) {
        fail("unknown escape in a string");
      }
    } else if (c >= 0x80) [[unlikely]] {
      const size_t length = utf8_length(p_, end_);
      if (length == 0) fail("string is not valid UTF-8");
      p_ += length - 1;
    }
  }
  fail("string without an end");
}

std::string_view JsonCursor::raw_string(std::string_view what) {
  if (peek() != '"') fail_expected(what, "a string");
  const char* start = p_;
  bool escaped;
  string_token(escaped);
  return {start, static_cast<size_t>(p_ - start)};
}

std::string_view JsonCursor::key() {
  if (peek() != '"') fail_expected("an object key", "a string");
  bool escaped;
  const std::string_view token = string_token(escaped);
  if (!escaped) return token;
  if (keys_.empty()) keys_.resize(kMaxDepth + 1);  // never moved, because outer keys are still in use
  return keys_[static_cast<size_t>(depth_)] = unescape(token);
}

std::string_view JsonCursor::string(std::string_view what) {
  if (peek() != '"') fail_expected(what, "a string");
  bool escaped;
  const std::string_view token = string_token(escaped);
  if (!escaped) return token;
  constexpr size_t kBlock = 512;
  const std::string text = unescape(token);
  if (kept_.empty() || kept_.front().capacity() - kept_.front().size() < text.size())
    kept_.emplace_front().reserve(std::max(text.size(), kBlock));
  std::string& block = kept_.front();
  block += text;
  return std::string_view(block).substr(block.size() - text.size());
}

std::string JsonCursor::unescape(std::string_view token) const {
  std::string text;
  const char* const end = token.data() + token.size();
  for (const char* p = token.data(); p != end; ++p) {
    if (*p != '\\') {
      text += *p;
      continue;
    }
    constexpr std::string_view kEscapes = "bfnrt", kMeanings = "\b\f\n\r\t";
    const char c = *++p;
    if (const size_t at = kEscapes.find(c); at != std::string_view::npos) {
      text += kMeanings[at];
    } else if (c != 'u') {
      text += c;
    } else {
      uint32_t code = static_cast<uint32_t>(hex4(p + 1));
      p += 4;
      if (code >= 0xd800 && code < 0xe000) {
        const int32_t low = code < 0xdc00 && end - p > 6 && p[1] == '\\' && p[2] == 'u' ? hex4(p + 3) : -1;
        if (low < 0xdc00 || low >= 0xe000) fail("unpaired surrogate in a string");
        code = 0x10000 + ((code - 0xd800) << 10) + (static_cast<uint32_t>(low) - 0xdc00);
        p += 6;
      }
      append_utf8(text, code);
    }
  }
  return text;
}

uint64_t JsonCursor::unsigned_integer(std::string_view what) {
  if (!is_digit(peek())) fail_expected(what, "an unsigned integer");
  uint64_t value = 0;
  const auto [end, ec] = std::from_chars(p_, end_, value);
  if (ec != std::errc() || (*p_ == '0' && end != p_ + 1) ||
      (end != end_ && (*end == '.' || *end == 'e' || *end == 'E'))) {
    fail_expected(what, "an unsigned integer of 64 bits");
  }
  p_ = end;
  return value;
}

bool JsonCursor::boolean(std::string_view what) {
  const char c = peek();
  if (c == 't') {
    skip_literal("true");
    return true;
  }
  if (c != 'f') fail_expected(what, "true or false");
  skip_literal("false");
  return false;
}

double JsonCursor::number(std::string_view what) {
  const char c = peek();
  if (!is_digit(c) && c != '-') fail_expected(what, "a number");
  const char* start = p_;
  skip_number();
  double value = 0;
  std::from_chars(start, p_, value);
  return value;
}

bool JsonCursor::consume_null() {
  if (peek() != 'n') return false;
  skip_literal("null");
  return true;
}

void JsonCursor::skip_literal(std::string_view literal) {
  if (std::string_view(p_, static_cast<size_t>(end_ - p_)).substr(0, literal.size()) != literal) fail("unknown token");
  p_ += literal.size();
}

void JsonCursor::skip_number() {
  if (p_ != end_ && *p_ == '-') ++p_;
  if (p_ == end_ || !is_digit(*p_)) {
    if (p_ != end_ && *p_ == 'I') return skip_literal("Infinity");
    fail("malformed number");
  }
  if (*p_ == '0') {
    ++p_;
    if (p_ != end_ && is_digit(*p_)) fail("number with a leading zero");
  } else {
    while (p_ != end_ && is_digit(*p_)) ++p_;
  }
  const auto digits = [&] {
    if (p_ == end_ || !is_digit(*p_)) fail("malformed number");
    while (p_ != end_ && is_digit(*p_)) ++p_;
  };
  if (p_ != end_ && *p_ == '.') {
    ++p_;
    digits();
  }
  if (p_ != end_ && (*p_ == 'e' || *p_ == 'E')) {
    ++p_;
    if (p_ != end_ && (*p_ == '+' || *p_ == '-')) ++p_;
    digits();
  }
}

std::string_view JsonCursor::skip() {
  peek();
  const char* const start = p_;
  std::array<char, kMaxDepth + 1> closers;
  int open = 0;
  bool escaped;
  const auto key = [&] {
    if (peek() != '"') fail("expected an object key");
    string_token(escaped);
    expect(':');
  };
  for (;;) {
    // Skips one value.
    switch (const char c = peek()) {
      case '[':
      case '{':
        if (depth_ + open >= kMaxDepth) fail("nested deeper than 100 levels");
        ++p_;
        closers[open++] = c == '[' ? ']' : '}';
        if (peek() == closers[open - 1]) break;  // handled below
        if (c == '{') key();
        continue;
      case '"':
        string_token(escaped);
        break;
      case 't':
        skip_literal("true");
        break;
      case 'f':
        skip_literal("false");
        break;
      case 'n':
        skip_literal("null");
        break;
      case 'N':
        skip_literal("NaN");
        break;
      case 'I':
        skip_literal("Infinity");
        break;
      default:
        if (c != '-' && !is_digit(c)) fail("expected a value");
        skip_number();
    }
    // After a value come closing brackets, then a comma and the next value, or the end.
    while (open > 0 && peek() == closers[open - 1]) {
      ++p_;
      --open;
    }
    if (open == 0) return {start, static_cast<size_t>(p_ - start)};
    expect(',');
    if (closers[open - 1] == '}') key();
  }
}

std::string_view JsonCursor::skip_unchecked() {
  const char first = peek();
  if (first != '[' && first != '{') return skip();
  const char* const start = p_;
  int open = 0;
  bool escaped;
  for (;;) {
    while (end_ - p_ >= 32) {
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p_));
      // '[' and ']' differ from '{' and '}' only in bit 5.
      const __m256i folded = _mm256_or_si256(bytes, _mm256_set1_epi8(0x20));
      const auto mask = [](__m256i a, char c) {
        return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, _mm256_set1_epi8(c))));
      };
      const int opening = std::popcount(mask(folded, '{'));
      const int closing = std::popcount(mask(folded, '}'));
      if (mask(bytes, '"') != 0 || closing >= open || depth_ + open + opening > kMaxDepth) break;
      open += opening - closing;
      p_ += 32;
    }
    // Processes byte by byte a stretch with a string, the end, or too many brackets to count.
    const char* const stop = end_ - p_ >= 32 ? p_ + 32 : end_;
    while (p_ < stop) {
      switch (*p_) {
        case '"':
          string_token(escaped);
          continue;
        case '[':
        case '{':
          if (depth_ + open >= kMaxDepth) fail("nested deeper than 100 levels");
          ++open;
          break;
        case ']':
        case '}':
          if (--open == 0) {
            ++p_;
            return {start, static_cast<size_t>(p_ - start)};
          }
          break;
        default:
          break;
      }
      ++p_;
    }
    if (p_ == end_) fail("array or object without an end");
  }
}

void JsonCursor::finish() {
  if (peek() != '\0' || p_ != end_) fail("unexpected text after the value");
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p != end;) {
    const unsigned char c = static_cast<unsigned char>(*p);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += *p++;
    } else if (c < 0x20 || c == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", c);
      out += escape;
      ++p;
    } else if (const size_t length = utf8_length(p, end); length != 0) {
      out.append(p, length);
      p += length;
    } else {
      out += "\xef\xbf\xbd";
      ++p;
    }
  }
  out += '"';
}

void fail_member(std::string_view what, std::string_view key) {
  SCONCE_FAIL(kInvalidArgument, "unknown member '", excerpt(key), "' of ", what);
}

}  // namespace sconce::server
