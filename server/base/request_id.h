// RequestId: what a request is called in logs, traces and its answer: the client's X-Request-Id, else a random number
// that is made when it is first needed. Reused from request to request; confined to the connection's thread.
#pragma once

#include <string>
#include <string_view>

namespace sconce::server {

class RequestId {
 public:
  // field: the client's, empty if it sent none. One that is longer than 128 characters or not printable counts as none.
  void begin(std::string_view field);
  bool given() const noexcept { return given_; }
  const std::string& text() const;

 private:
  mutable std::string text_;
  bool given_ = false;
};

}  // namespace sconce::server
