// ResponseWriter: sends one response after the other. The header and the text go out as one piece. Tensors follow from
// their own memory; small tensors are copied behind the text, because a second piece costs the kernel more time than
// the copy. The Response owns the data and must not change before done(). Nothing here blocks. Used only on the
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

namespace sconce::server::http {

class ResponseWriter {
 public:
  using error_code = boost::system::error_code;

  // Inputs of the header besides the Response.
  struct Form {
    bool http11 = true;      // version of the request
    bool head_only = false;  // HEAD request: send the header without the body
    bool close = false;      // last response of the connection
  };

  ResponseWriter(Transport& transport, ClientClock& clock) noexcept : transport_(transport), clock_(clock) {}
  ResponseWriter(const ResponseWriter&) = delete;

  // Reserves memory for a response of text only, so that begin() cannot fail for it.
  void reserve() {
    pieces_.clear();
    pieces_.reserve(1);
  }
  // Starts the next response at `now`. If this throws, nothing was sent and another response can begin. date: the Date
  // field. pace: the minimum rate at which the client must read the response.
  void begin(Response& response, Form form, std::string_view date, Pace pace, ClientClock::Time now);
  // Starts the next piece of text of a streamed response, after begin(). Call this only if done().
  void go_on(Response& response, Pace pace);
  // Sends as much as the transport accepts now and returns the number of bytes. Call this only if not done().
  size_t write(error_code& ec);
  bool done() const noexcept { return sent_ == bytes_; }
  bool untouched() const noexcept { return writes_ == 0; }  // nothing was sent yet
  // Whether a single write sent the whole response.
  bool done_at_once() const noexcept { return done() && writes_ == 1; }

  bool closes() const noexcept { return close_; }   // the connection ends with this response
  size_t bytes() const noexcept { return bytes_; }  // of the response, header included

 private:
  Transport& transport_;
  ClientClock& clock_;
  std::vector<boost::asio::const_buffer> pieces_;  // of the response; pieces before at_ are sent
  size_t at_ = 0;
  size_t bytes_ = 0, sent_ = 0;
  int writes_ = 0;  // number of attempted writes
  bool close_ = false;
};

}  // namespace sconce::server::http
