// ResponseWriter: sends answers one after the other: head and text in one piece, then the tensors from where they are;
// small ones are copied behind the text, because the kernel takes longer for a second piece than a copy.
// The data belong to the Response, which must not change before done(). Nothing here blocks. Used only on the
// connection's thread.
#pragma once

#include <boost/asio/buffer.hpp>
#include <cstddef>
#include <string_view>
#include <vector>

#include "server/http/client_clock.h"
#include "server/http/response.h"
#include "server/http/transport.h"
#include "server/support/pace.h"

namespace sconce::server {

class ResponseWriter {
 public:
  using error_code = boost::system::error_code;

  // What the head depends on besides the Response.
  struct Form {
    bool http11 = true;      // the request's version
    bool head_only = false;  // HEAD: the head without the body
    bool close = false;      // last answer of the connection
  };

  ResponseWriter(Transport& transport, ClientClock& clock) noexcept : transport_(transport), clock_(clock) {}
  ResponseWriter(const ResponseWriter&) = delete;

  // Takes the memory for an answer of text only, so that begin() cannot fail for it.
  void reserve() {
    pieces_.clear();
    pieces_.reserve(1);
  }
  // Starts the next answer at `now`. If this throws, nothing was sent and another answer can begin. date: for the head.
  // pace: how fast the client must take the answer.
  void begin(Response& response, Form form, std::string_view date, Pace pace, ClientClock::Time now);
  // After that: a further piece of text of a streamed answer. done() is true before.
  void go_on(Response& response, Pace pace);
  // Sends what the transport takes now and returns how many bytes. Call this only if not done().
  size_t write(error_code& ec);
  bool done() const noexcept { return sent_ == bytes_; }
  bool untouched() const noexcept { return writes_ == 0; }  // nothing of it was sent yet
  // Whether one write sent all of it.
  bool done_at_once() const noexcept { return done() && writes_ == 1; }

  bool closes() const noexcept { return close_; }   // the connection ends with this answer
  size_t bytes() const noexcept { return bytes_; }  // of the answer, with its head

 private:
  Transport& transport_;
  ClientClock& clock_;
  std::vector<boost::asio::const_buffer> pieces_;  // of the answer; those before at_ are sent
  size_t at_ = 0;
  size_t bytes_ = 0, sent_ = 0;
  int writes_ = 0;  // that were tried
  bool close_ = false;
};

}  // namespace sconce::server
