#include "server/http/response.h"

#include <charconv>
#include <cstring>

namespace sconce::server {
namespace {

std::string_view reason_phrase(int status) noexcept {
  switch (status) {
    case 200:
      return "OK";
    case 202:
      return "Accepted";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    default:
      return "Error";
  }
}

}  // namespace

std::string_view Response::finish(bool http11, bool close, bool head_only, std::string_view date) noexcept {
  // All fields of variable length are short, so every head fits.
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
  put("\r\nContent-Length: ");
  put_number(body_bytes());
  if (json_length) {
    put("\r\nInference-Header-Content-Length: ");
    put_number(*json_length);
  }
  if (generation != 0) {
    put("\r\nSconce-Generation: ");
    put_number(generation);
  }
  if (!request_id.empty()) {
    put("\r\nX-Request-Id: ");
    put(request_id);
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
  put("\r\n");
  const size_t bytes = static_cast<size_t>(p - head);
  char* const start = text_.data() + kHeadRoom - bytes;
  std::memcpy(start, head, bytes);
  return {start, bytes + (head_only ? 0 : text_bytes())};
}

}  // namespace sconce::server
