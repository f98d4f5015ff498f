// RequestId: a request's name in logs, traces and its answer. It is the client's X-Request-Id, else a random number
// made when first needed. Reused for each request; used only by the connection's thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sconce::server {

class RequestId {
 public:
  // field: what the client sent, or empty. Ignored if it has more than 128 characters or unprintable ones.
  void begin(std::string_view field);
  bool given() const noexcept { return given_; }
  const std::string& text() const;

 private:
  mutable std::string text_;
  bool given_ = false;
};

// Random digits of a hexadecimal number that is not 0. `digits`: a multiple of 16.
std::string random_hex(size_t digits);

}  // namespace sconce::server
