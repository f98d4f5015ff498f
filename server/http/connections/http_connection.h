// HttpConnection: one connection. It owns the socket and its clock, the reader that turns bytes into requests, the
// writer that sends responses, and the stream that handles the current request. It decides which of these continues. It
// answers one request after the other, and starts the next request only when the last one is answered.
//
//                     +------------------- all bytes are sent, and the client may send more requests ---------+
//                     v                                                                                       |
//   kHandshake --> kReading --- answered at once, or refused -------------------------------------------> kWriting
//   (of TLS)            |                                                                               ^   |
//                       | another thread has the request                            the answer is ready |   | all bytes
//                       v                                                                               |   | are sent,
//                   kWaiting --- that thread has released it --> kReturned -----------------------------+   | for the
//                     |  ^                                           |                                  |   | last time
//                     |  +------ the next thread has it -------------+                                  |   v
//                     +--------- the model's deadline has passed ---------------------------------------+ kLingering
//                                                                                                           |
//                                                                                                           v
//                                                                                                         kClosed
//
// A streamed answer goes from kWriting back to kWaiting until the next piece is ready. While an event stream has no new
// events, no thread has the request; the tick polls for new events.
//
// Every state can end in kClosed: the client disconnects, a deadline passes, or the server shuts down. A closed
// connection stays until no other thread uses it, and until the I/O thread's next tick. RequestReader knows how much of
// a request was read; HttpStream knows which thread works on it.
//
// The I/O thread's tick checks deadlines, with the precision that runs need. Used only on the I/O thread, except that
// the thread that has the request may use its reader and transport until notify() (HttpCall).
#pragma once

#include <algorithm>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "server/http/client_clock.h"
#include "server/http/connections/event_loop.h"
#include "server/http/connections/http_handler.h"
#include "server/http/connections/io_thread.h"
#include "server/http/open_connections.h"
#include "server/http/request_reader.h"
#include "server/http/response_writer.h"
#include "server/http/transport.h"
#include "server/support/files/descriptor.h"

namespace sconce::server::http {

class HttpConnection final : private EventLoop::Watcher {
 public:
  using Clock = IoThread::Clock;
  using error_code = boost::system::error_code;

  // peer: the client's address.
  HttpConnection(IoThread& io_thread, Descriptor socket, Listeners listener, OpenConnections::Slot slot,
                 std::string peer);
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;
  ~HttpConnection();

  // Returns the lent request to the I/O thread, which then calls the stream's resume(). The only function that other
  // threads may call. Cannot fail. At most one notice may be pending.
  void notify() noexcept { io_thread_.notify(*this); }
  // kUnavailable: the connection cannot be watched, and is closed.
  void start(IoThread::Connections::iterator self);
  void check_deadline(Clock::time_point now);
  // Deadline of the model's answer; max() if none is awaited.
  Clock::time_point run_deadline() const noexcept {
    return waits_for_model() ? clock_.deadline() : Clock::time_point::max();
  }
  Listeners listener() const noexcept { return stream_->listener(); }
  // Its state for IoThread::idlest().
  IoThread::Idle idle(Clock::time_point now) const noexcept;
  // Closes the connection to make room for another one. Returns false if it is no longer idle.
  bool make_room() noexcept;
  void leave() noexcept { slot_.release(); }  // the connection is no longer counted
  // At shutdown: closes the connection unless a request is in progress or about to arrive.
  void close_if_idle(Clock::time_point now);
  // After the drain timeout: closes a connection whose client has not sent its whole request or not read its answer.
  // tell: first answers a client that has not sent its whole request.
  void end_client(bool tell) noexcept;
  // When the I/O thread ends: closes the connection. Returns true if other threads still compute its answer.
  bool abandon() noexcept {
    close();
    return stream_->computing();
  }

 private:
  friend class IoThread;  // on_notice(), go_on(), send_answer(), next_notice_
  enum class State : int8_t {
    kHandshake,  // of TLS
    kReading,    // a request, or waiting for one
    kWaiting,    // for another thread, which has the request
    kReturned,   // that thread has released the request
    kWriting,    // sending the answer
    kLingering,  // answered for the last time; later bytes of the client are discarded
    kClosed,
  };
  enum class Next : int8_t { kContinue, kWait };  // whether steps() continues

  // http_connection.cpp: the change of states
  void proceed() noexcept;
  void steps();
  Next handshake();
  Next read_request();
  void follow(HttpStream::Next next);
  void wait();
  void begin_answer();
  Next write();
  void finish_request();
  void on_notice() noexcept;
  void send_answer() noexcept;
  void linger(bool unread) noexcept;
  void close() noexcept;
  // http_connection_read.cpp: incoming bytes
  void ready(uint32_t events) noexcept override;
  void go_on() noexcept;
  void ask_again() noexcept;
  size_t read(std::span<char> room, error_code& ec) noexcept;
  Next receive(std::span<char> room);
  void look_again() noexcept;
  void read_ahead() noexcept;
  void throw_away() noexcept;
  // http_connection_limits.cpp: deadlines and memory
  void refuse_late(int status, std::string_view message) noexcept;
  void end_feed() noexcept;
  size_t largest() const noexcept { return std::max(reader_.largest(), stream_->largest()); }
  void trim(size_t keep) noexcept;
  void trim_idle() noexcept;

  bool between_requests() const noexcept { return state_ == State::kReading && reader_.idle(); }
  bool waits_for_model() const noexcept { return state_ == State::kWaiting && stream_->waiting().timed; }
  bool feeds() const noexcept { return state_ == State::kWaiting && stream_->waiting().events; }
  bool looks_ahead() const noexcept {
    if (state_ != State::kWaiting) return false;
    const HttpStream::Waiting waiting = stream_->waiting();
    return waiting.events || (waiting.timed && waiting.reads_ahead);
  }
  void retire_if_over() noexcept;

  IoThread& io_thread_;                       // runs everything of this connection
  IoThread::Connections::iterator self_;      // in the I/O thread's list
  OpenConnections::Slot slot_;                // counts the connection
  Transport transport_;                       // the socket, and TLS
  ClientClock clock_;                         // the deadline for the client or the model
  RequestReader reader_;                      // bytes from the transport -> requests
  ResponseWriter writer_;                     // responses -> bytes to the transport
  const std::unique_ptr<HttpStream> stream_;  // handles the requests
  State state_ = State::kReading;
  bool readable_ = false;                  // there may be bytes to read
  bool unsure_ = false;                    // or otherwise: most probably there are none
  bool told_ = false;                      // the loop has reported it since the last read
  bool hung_up_ = false;                   // the client has closed its sending side, so there is an end to read
  bool deferred_ = false;                  // the I/O thread sends the answer soon
  bool asked_again_ = false;               // the I/O thread calls go_on() soon
  bool retired_ = false;                   // in the I/O thread's list of retired connections
  int reads_ = 0;                          // in this iteration of the loop
  error_code ended_;                       // the error of a read ahead: no more bytes come
  size_t thrown_away_ = 0;                 // bytes discarded in kLingering
  bool freed_ = false;                     // trim() freed memory that the thread's heap still caches
  HttpConnection* next_notice_ = nullptr;  // next connection in the I/O thread's list of notices
};

}  // namespace sconce::server::http
