#include "server/http/response.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace sconce::server::http {
namespace {

std::string_view reason_phrase(int status) noexcept {
  constexpr std::pair<int, std::string_view> kPhrases[] = {{200, "OK"},
                                                           {202, "Accepted"},
                                                           {204, "No Content"},
                                                           {304, "Not Modified"},
                                                           {400, "Bad Request"},
                                                           {401, "Unauthorized"},
                                                           {403, "Forbidden"},
                                                           {404, "Not Found"},
                                                           {405, "Method Not Allowed"},
                                                           {408, "Request Timeout"},
                                                           {409, "Conflict"},
                                                           {411, "Length Required"},
                                                           {413, "Content Too Large"},
                                                           {415, "Unsupported Media Type"},
                                                           {417, "Expectation Failed"},
                                                           {422, "Unprocessable Content"},
                                                           {429, "Too Many Requests"},
                                                           {431, "Request Header Fields Too Large"},
                                                           {499, "Client Closed Request"},
                                                           {500, "Internal Server Error"},
                                                           {501, "Not Implemented"},
                                                           {503, "Service Unavailable"},
                                                           {504, "Gateway Timeout"},
                                                           {505, "HTTP Version Not Supported"},
                                                           {507, "Insufficient Storage"}};
  const auto* const found = std::lower_bound(std::begin(kPhrases), std::end(kPhrases), status,
                                             [](const auto& one, int wanted) { return one.first < wanted; });
  return found != std::end(kPhrases) && found->first == status ? found->second : "Error";
}

}  // namespace

void Response::join(size_t most) {
  const size_t bytes = body_bytes() - text_bytes();
  if (bytes == 0 || bytes > most) return;
  text_.reserve(bytes);
  for (const Segment& segment : segments) text_.append({static_cast<const char*>(segment.data), segment.bytes});
  segments.clear();
}

void Response::end_piece(bool chunked, bool last) {
  if (!chunked) return;
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr size_t kSizeBytes = 10;  // "0000001f\r\n"
  char* const at = text_.data() + kHeadRoom;
  size_t bytes = text_bytes() - kSizeBytes;
  if (bytes == 0) {  // an empty chunk would end the answer
    text_.truncate(kHeadRoom);
    if (last) text_.append("0\r\n\r\n");
    return;
  }
  for (size_t i = 8; i-- > 0; bytes >>= 4) at[i] = kDigits[bytes & 15];
  text_.append(last ? "\r\n0\r\n\r\n" : "\r\n");
}

std::string_view Response::finish(bool http11, bool close, bool head_only, std::string_view date) noexcept {
  // All fields of variable length are short, so every header fits.
  char head[kHeadRoom];
  char* p = head;
  const auto put = [&](std::string_view text) {
    if (!text.empty()) std::memcpy(p, text.data(), text.size());
    p += text.size();
  };
  const auto put_number = [&](size_t number) { p = std::to_chars(p, p + 20, number).ptr; };
  if (status == 200) {
    put("HTTP/1.1 200 OK\r\n");
  } else {
    put("HTTP/1.1 ");
    put_number(static_cast<size_t>(status));
    put(" ");
    put(reason_phrase(status));
    put("\r\n");
  }
  put("Content-Type: ");
  put(type);
  if (status == 304 || status == 204) [[unlikely]] {
    // A 304's length would have to be that of the 200; a 204 has none.
  } else if (!streamed) {
    put("\r\nContent-Length: ");
    put_number(body_bytes());
  } else {
    put("\r\nCache-Control: no-cache");
    if (http11) put("\r\nTransfer-Encoding: chunked");
  }
  if (json_length) {
    put("\r\nInference-Header-Content-Length: ");
    put_number(*json_length);
  }
  if (weight_version != 0) {
    put("\r\nSconce-Weight-Version: ");
    put_number(weight_version);
    put("\r\nSconce-Generation: ");  // deprecated
    put_number(weight_version);
  }
  if (!weights.empty()) {
    put("\r\nSconce-Weights: ");
    put(weights);
  }
  if (!request_id.empty()) {
    put("\r\nX-Request-Id: ");
    put(request_id);
  }
  if (timing_bytes != 0) {
    put("\r\nServer-Timing: ");
    put({timing.data(), timing_bytes});
  }
  put("\r\nDate: ");
  put(date);
  put("\r\n");
  if (close) {
    put("Connection: close\r\n");
  } else if (!http11) {
    put("Connection: keep-alive\r\n");
  }
  put(fields);
  put(page_fields);
  put("\r\n");
  const size_t bytes = static_cast<size_t>(p - head);
  char* const start = text_.data() + kHeadRoom - bytes;
  std::memcpy(start, head, bytes);
  return {start, bytes + (head_only ? 0 : text_bytes())};
}

}  // namespace sconce::server::http
