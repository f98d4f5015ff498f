// RequestId: a request's name in logs, traces and its answer. It is the client's X-Request-Id, else a random number
// made when first needed. Reused for each request; used by one thread at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sconce::server {

class RequestId {
 public:
  // field: the client's field, or empty. Ignored if it has more than 128 characters or unprintable ones.
  void begin(std::string_view field);
  // The request's trace id from the client: 32 hexadecimal digits; empty: none.
  void set_trace(std::string_view id) { trace_.assign(id); }
  const std::string& trace() const noexcept { return trace_; }
  bool given() const noexcept { return given_; }
  const std::string& text() const;

 private:
  mutable std::string text_;
  std::string trace_;
  bool given_ = false;
};

// Random hexadecimal digits, not all 0. digits: a multiple of 16.
std::string random_hex(size_t digits);

}  // namespace sconce::server
