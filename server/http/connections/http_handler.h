// HttpHandler and HttpStream: the interface by which the HTTP server gets answers from a program. The server knows
// sockets, TLS, framing, deadlines and limits; the program knows routes.
//
// Each I/O thread has one HttpHandler. Each connection has one HttpStream, which handles its requests one after the
// other and is reused, so that a request allocates no memory. All calls come from the connection's I/O thread. Between
// kWait and the notice (HttpConnection::notify), other threads may work on the request; the stream knows which.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/http/request_reader.h"
#include "server/http/response.h"
#include "server/http/response_writer.h"
#include "server/http/router.h"
#include "server/support/request_id.h"

namespace sconce::server::http {

class HttpConnection;

class HttpStream {
 public:
  using Clock = std::chrono::steady_clock;
  // The connection's next action.
  enum class Next : int8_t {
    kReadBody,  // the request is admitted: read its body, then call dispatch()
    kWait,      // another thread has the request: wait for its notice, then call resume()
    kAnswer,    // the response is ready: send it
    kPiece,     // the next piece of the response is ready: send it
    kSent,      // another thread has sent the answer: close the connection
    kHangUp,    // the work is done, but memory for the answer is short: close the connection
  };
  // Permissions of the connection after kWait.
  struct Waiting {
    bool timed = false;       // deadline() applies; a disconnect of the client cancels the request
    bool events = false;      // no thread has the request: call resume() periodically
    bool reads_ahead = true;  // the client's next bytes may be read
  };

  virtual ~HttpStream() = default;

  // The steps of a request. Their exceptions are passed to fail().
  virtual Next begin(Clock::time_point now) = 0;  // the reader has its header
  virtual Next dispatch() = 0;                    // the reader has its body
  virtual Next resume() = 0;                      // after a notice
  virtual Next next_piece() = 0;                  // after the previous pieces were sent, if streaming()
  // Other ways to end a request, after which the response is ready. refuse() also ends the connection.
  virtual Next refuse(int status, std::string_view message) = 0;
  virtual Next refuse_length() = 0;  // the body exceeds the limit that begin() gave the reader
  virtual void fail(const std::exception_ptr& problem) = 0;
  virtual void run_out_of_time() = 0;
  virtual Next end_feed() = 0;  // the last piece of an event stream
  // Call this before the answer is sent. Returns the inputs of its header.
  virtual ResponseWriter::Form finish_response() = 0;
  virtual void count_answer() noexcept = 0;
  // The answer of `bytes` bytes was sent; its encoding ended at `encoded`.
  virtual void end(size_t bytes, Clock::time_point encoded) = 0;
  // Bytes of an answer that another thread has sent (kSent).
  virtual uint64_t sent_elsewhere() const noexcept = 0;

  virtual Waiting waiting() const noexcept = 0;
  virtual Clock::time_point deadline() const noexcept = 0;
  // Whether another thread has the request, or uses the reader or the transport.
  virtual bool lent() const noexcept = 0;
  // Whether that thread calls notify() soon, so that a shutdown waits for it.
  virtual bool computing() const noexcept = 0;
  // The client disconnected while the request was timed. Returns true if the request has ended.
  virtual bool cancel_for_client() noexcept = 0;
  // The connection closed. Objects that another thread uses stay until take_back().
  virtual void abandon() noexcept = 0;
  // Handles the notice of an abandoned request.
  virtual void take_back() noexcept = 0;
  // When the answer was ready, if known; zero otherwise.
  virtual Clock::time_point answered() const noexcept = 0;

  // Bytes kept for the next request.
  virtual size_t capacity() const noexcept = 0;
  // Frees memory beyond `keep` bytes. No request may be in progress.
  virtual void trim(size_t keep) noexcept = 0;

  Clock::time_point start() const noexcept { return start_; }  // of the last request that begin() accepted
  Response& response() noexcept { return response_; }
  // Whether further pieces of the answer follow.
  bool streaming() const noexcept { return streaming_; }
  const RequestId& request_id() const noexcept { return request_id_; }
  const std::string& peer() const noexcept { return peer_; }
  Listeners listener() const noexcept { return listener_; }
  // Bytes of the largest answer's text since the last trim().
  size_t largest() const noexcept { return largest_; }

 protected:
  // peer: the client's address.
  HttpStream(Listeners listener, std::string peer) : listener_(listener), peer_(std::move(peer)) {}

  const Listeners listener_;
  const std::string peer_;
  Clock::time_point start_;  // when the header of the request was complete
  RequestId request_id_;     // in logs, traces and the answer
  Response response_;
  bool streaming_ = false;  // the header of the answer is ready or sent, its end is not
  size_t largest_ = 0;
};

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Called for a new connection. Both arguments outlive the stream.
  virtual std::unique_ptr<HttpStream> open(HttpConnection& connection, RequestReader& reader, Listeners listener,
                                           std::string peer) = 0;
  // Called at every tick of the I/O thread (100 ms) while it has connections.
  virtual void tick() {}
  // The I/O thread sleeps until the next connection: release objects that may be replaced meanwhile.
  virtual void rest() noexcept {}
};

}  // namespace sconce::server::http
