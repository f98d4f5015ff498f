// HttpConnection: one connection. It owns the socket and its clock, the reader that turns bytes into requests, the
// writer that sends answers, and the stream, which handles the current request. It decides which of them goes on. It
// answers one request after the other and starts the next only when the last is answered.
//
//                     +------------------- all bytes are sent, and the client may ask again ------------------+
//                     v                                                                                       |
//   kHandshake --> kReading --- answered at once, or refused -------------------------------------------> kWriting
//   (of TLS)            |                                                                               ^   |
//                       | another thread has the request                              the answer stands |   | all bytes
//                       v                                                                               |   | are sent,
//                   kWaiting --- that thread has let go --> kReturned ----------------------------------+   | for the
//                     |  ^                                      |                                       |   | last time
//                     |  +------ the next thread has it --------+                                       |   v
//                     +--------- the model's time is up ------------------------------------------------+ kLingering
//                                                                                                           |
//                                                                                                           v
//                                                                                                         kClosed
//
// An answer in pieces goes from kWriting back to kWaiting while the next piece is not there. No thread has the request
// while a feed has nothing to tell; the tick looks whether it has.
//
// Every state can end in kClosed: the client leaves, a deadline passes, the server ends. A closed connection stays
// until no other thread uses it, and until the I/O thread's next tick. RequestReader knows how much of a request was
// read, HttpStream which thread works on it.
//
// The I/O thread's tick checks deadlines, early enough for those of runs. Used only on the I/O thread.
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

namespace sconce::server {

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

  // Ends the wait of the stream's request. On any thread; cannot fail. At most one notice may be under way.
  void notify() noexcept { io_thread_.notify(*this); }
  // kUnavailable: it cannot be watched, and is closed.
  void start(IoThread::Connections::iterator self);
  void check_deadline(Clock::time_point now);
  // When the model's answer is due; max() if none is awaited.
  Clock::time_point run_deadline() const noexcept {
    return waits_for_model() ? clock_.deadline() : Clock::time_point::max();
  }
  Listeners listener() const noexcept { return stream_->listener(); }
  // How it waits for its client; see IoThread::idlest().
  IoThread::Idle idle(Clock::time_point now) const noexcept;
  // Closes the connection to make room for another. Returns false if it is no longer idle.
  bool make_room() noexcept;
  void leave() noexcept { slot_.release(); }  // is not counted any more
  // When serving ends: closes the connection unless a request is under way or about to come.
  void close_if_idle(Clock::time_point now);
  // When time is up: closes a connection whose client has not sent its request or not taken its answer. tell: first
  // answers a client that has not sent its request.
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
    kWaiting,    // for another thread, which has the exchange
    kReturned,   // that thread has let go
    kWriting,    // the answer
    kLingering,  // answered for the last time; what the client still sends is thrown away
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

  IoThread& io_thread_;                       // everything happens on its thread
  IoThread::Connections::iterator self_;      // in the I/O thread's list
  OpenConnections::Slot slot_;                // counts the connection
  Transport transport_;                       // the socket, and TLS
  ClientClock clock_;                         // the deadline of the client or the model
  RequestReader reader_;                      // bytes from the transport -> requests
  ResponseWriter writer_;                     // responses -> bytes to the transport
  const std::unique_ptr<HttpStream> stream_;  // handles the requests
  State state_ = State::kReading;
  bool readable_ = false;                  // there may be something to read
  bool unsure_ = false;                    // or else: most probably there is nothing
  bool told_ = false;                      // the loop said so since the last read
  bool hung_up_ = false;                   // the client sends no more, so there is an end to read
  bool deferred_ = false;                  // the I/O thread sends the answer soon
  bool asked_again_ = false;               // the I/O thread calls go_on() soon
  bool retired_ = false;                   // is in the I/O thread's list of those
  int reads_ = 0;                          // in this turn
  error_code ended_;                       // the error of a read ahead: nothing more comes
  size_t thrown_away_ = 0;                 // bytes that came in kLingering
  bool freed_ = false;                     // trim() freed memory that the thread's heap still has
  HttpConnection* next_notice_ = nullptr;  // the next connection whose holder let go, in the I/O thread's list
};

}  // namespace sconce::server
