// RepeatedHead: the last header of a connection, parsed. Most clients repeat the same header with the same body length.
// A header that equals the last one byte for byte is not parsed. Used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/http/request_parser.h"

namespace sconce::server::http {

class RepeatedHead {
 public:
  // Whether `text` begins with this header.
  bool begins(std::string_view text) const noexcept { return !text_.empty() && text.starts_with(text_); }
  // Stores the header that `parser` has read from `text`, if it is short. std::bad_alloc.
  void remember(std::string_view text, const RequestParser& parser) {
    text_.clear();
    if (text.size() > kMaxBytes) return;
    text_.reserve(text.size());
    head_ = parser.head();
    for (std::string_view RequestHeader::*const member : kHeadTexts) {
      std::string_view& view = head_.*member;
      if (!view.empty()) view = {text_.data() + (view.data() - text.data()), view.size()};
    }
    keep_alive_ = parser.keep_alive();
    content_length_ = parser.content_length().value_or(0);
    text_.assign(text);
  }

  std::string_view text() const noexcept { return text_; }
  size_t bytes() const noexcept { return text_.size(); }
  const RequestHeader& head() const noexcept { return head_; }  // its texts are valid until remember()
  bool keep_alive() const noexcept { return keep_alive_; }
  uint64_t content_length() const noexcept { return content_length_; }

 private:
  static constexpr size_t kMaxBytes = 1024;  // a connection keeps the header while it is idle

  std::string text_;
  RequestHeader head_;  // its texts are views of text_
  bool keep_alive_ = false;
  uint64_t content_length_ = 0;
};

}  // namespace sconce::server::http
