// Response: an answer before it is sent. There is room for the head in front of the text, so that both leave in one
// piece; tensors follow from where they are. Reused for each request; used only on the connection's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "server/support/text_buffer.h"

namespace sconce::server {

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
    generation = 0;
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
  std::string_view page_fields;         // the same, for pages in browsers; valid until the head is written
  std::optional<size_t> json_length;    // Inference-Header-Content-Length
  uint64_t generation = 0;              // of the weights that answered, sent as Sconce-Generation; 0: none
  std::string_view weights;             // the named set that answered, sent as Sconce-Weights; empty: none
  std::string_view request_id;          // X-Request-Id, 128 characters at most; empty: not sent
  std::array<char, kMaxTiming> timing;  // of a Server-Timing field
  size_t timing_bytes = 0;              // 0: it is not sent
  bool streamed = false;                // further pieces of text follow: HTTP/1.1 has them as chunks
  std::vector<Segment> segments;        // bytes after the text; their owners live until the answer is sent

  TextBuffer& text() noexcept { return text_; }
  size_t text_bytes() const noexcept { return text_.size() - kHeadRoom; }
  void set_text(std::string_view body) { text_.append(body); }
  size_t body_bytes() const noexcept {
    size_t bytes = text_bytes();
    for (const Segment& segment : segments) bytes += segment.bytes;
    return bytes;
  }

  // Copies the segments behind the text if they have at most so many bytes. std::bad_alloc; nothing has changed then.
  void join(size_t most);

  // A piece of a streamed answer: begin, append to text(), end. The piece before it was sent.
  void begin_piece(bool chunked) {
    text_.truncate(kHeadRoom);
    if (chunked) text_.append("00000000\r\n");
  }
  void end_piece(bool chunked, bool last);

  // Writes the head in front of the text. `date` is the Date field's value. Returns head and text, or only the head if
  // `head_only`.
  std::string_view finish(bool http11, bool close, bool head_only, std::string_view date) noexcept;

 private:
  TextBuffer text_;
};

}  // namespace sconce::server
