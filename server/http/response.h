// Response: an answer before it is sent. It leaves room for the header in front of the text, so that both are sent as
// one piece; tensors follow from their own memory. Reused for each request; used by one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "server/support/text_buffer.h"

namespace sconce::server::http {

namespace content_type {
constexpr std::string_view kJson = "application/json";
constexpr std::string_view kBinary = "application/octet-stream";
constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr std::string_view kEvents = "text/event-stream; charset=utf-8";
constexpr std::string_view kHtml = "text/html; charset=utf-8";
constexpr std::string_view kStyle = "text/css; charset=utf-8";
}  // namespace content_type

class Response {
 public:
  static constexpr size_t kHeadRoom = 2048;
  static constexpr size_t kMaxTiming = 160;  // bytes of `timing`

  struct Segment {
    const void* data;
    size_t bytes;
  };

  void reset() {
    status = 200;
    type = content_type::kJson;
    fields = {};
    page_fields = {};
    json_length.reset();
    weight_version = 0;
    weights = {};
    request_id = {};
    timing_bytes = 0;
    streamed = false;
    segments.clear();
    text_.clear();
    text_.commit(text_.reserve(kHeadRoom) + kHeadRoom);
  }

  int status = 200;
  std::string_view type = content_type::kJson;
  std::string_view fields;              // further header fields, each with CRLF; static text
  std::string_view page_fields;         // likewise, for pages in browsers; valid until the header is written
  std::optional<size_t> json_length;    // Inference-Header-Content-Length
  uint64_t weight_version = 0;          // version of the weights that answered, sent as Sconce-Weight-Version; 0: none
  std::string_view weights;             // the named weight set that answered, sent as Sconce-Weights; empty: none
  std::string_view request_id;          // X-Request-Id, 128 characters at most; empty: not sent
  std::array<char, kMaxTiming> timing;  // value of the Server-Timing field
  size_t timing_bytes = 0;              // 0: the field is not sent
  bool streamed = false;                // further pieces of text follow, as chunks for HTTP/1.1
  std::vector<Segment> segments;        // bytes after the text; their owners live until the answer is sent

  TextBuffer& text() noexcept { return text_; }
  size_t text_bytes() const noexcept { return text_.size() - kHeadRoom; }
  void set_text(std::string_view body) { text_.append(body); }
  size_t body_bytes() const noexcept {
    size_t bytes = text_bytes();
    for (const Segment& segment : segments) bytes += segment.bytes;
    return bytes;
  }

  // Copies the segments behind the text if they have at most `most` bytes. std::bad_alloc; nothing has changed then.
  void join(size_t most);

  // One piece of a streamed response: begin_piece(), append to text() or nothing, end_piece(). The previous piece must
  // have been sent.
  void begin_piece(bool chunked) {
    text_.truncate(kHeadRoom);
    if (chunked) text_.append("00000000\r\n");
  }
  void end_piece(bool chunked, bool last);

  // Writes the header in front of the text. `date` is the value of the Date field. Returns header and text, or only the
  // header if `head_only`.
  std::string_view finish(bool http11, bool close, bool head_only, std::string_view date) noexcept;

 private:
  TextBuffer text_;
};

}  // namespace sconce::server::http
