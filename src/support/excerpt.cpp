#include "src/support/excerpt.h"

#include "src/support/utf8.h"

namespace sconce {
namespace {

constexpr std::string_view kEllipsis = "\xe2\x80\xa6";
constexpr char kHex[] = "0123456789abcdef";

// C0, DEL and C1.
bool is_control(const char* p, size_t length) noexcept {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(p[i]); };
  return length == 1 ? byte(0) < 0x20 || byte(0) == 0x7f : length == 2 && byte(0) == 0xc2 && byte(1) < 0xa0;
}

}  // namespace

std::string excerpt(std::string_view text) {
  std::string out;
  const char* const end = text.data() + text.size();
  size_t whole = 0;  // bytes of `out` that leave room for an ellipsis
  for (const char* p = text.data(); p != end;) {
    const size_t length = utf8_length(p, end);
    if (length == 0 || is_control(p, length)) {
      const size_t bytes = length == 0 ? 1 : length;
      for (const char* const stop = p + bytes; p != stop; ++p) {
        const auto byte = static_cast<unsigned char>(*p);
        byte == 0 ? out += "\\0" : out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
      }
    } else {
      out.append(p, length);
      p += length;
    }
    if (out.size() <= kExcerptBytes - kEllipsis.size()) whole = out.size();
    if (out.size() > kExcerptBytes || (p != end && out.size() == kExcerptBytes)) {
      out.resize(whole);
      return out += kEllipsis;
    }
  }
  return out;
}

std::string shortened(std::string message, size_t most) {
  if (message.size() <= most) return message;
  size_t keep = most - kEllipsis.size();
  while (keep > 0 && (static_cast<unsigned char>(message[keep]) & 0xc0) == 0x80) --keep;
  message.resize(keep);
  return message += kEllipsis;
}

}  // namespace sconce
