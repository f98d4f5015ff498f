// Session: one connection. It owns the socket and its clock, the reader that makes requests of bytes, the writer that
// sends answers, and the exchange, which is the request under way. It decides which of them goes on. It answers one
// request after the other, and looks at the next one only when the last is answered.
//
//                     +------------------- all bytes are sent, and the client may ask again ------------------+
//                     v                                                                                       |
//   kHandshake --> kReading --- answered at once, or refused -------------------------------------------> kWriting
//   (of TLS)            |                                                                               ^   |
//                       | another thread has the exchange                             the answer stands |   | all bytes
//                       v                                                                               |   | are sent,
//                   kWaiting --- that thread has let go --> kReturned ----------------------------------+   | for the
//                     |  ^                                      |                                       |   | last time
//                     |  +------ the next thread has it --------+                                       |   v
//                     +--------- the model's time is up ------------------------------------------------+ kLingering
//                                                                                                           |
//                                                                                                           v
//                                                                                                         kClosed
//
// Every state can end in kClosed: the client goes, its time is up, the server ends. A closed session stays until no
// operation of the event loop and no other thread needs it. RequestReader knows how far a request was read, Exchange
// which thread works on it.
//
// Deadlines are looked at by the I/O thread's tick, which comes in time for those of runs. Confined to the I/O thread.
#pragma once

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "server/connections/exchange.h"
#include "server/connections/io_thread.h"
#include "server/http/answer_writer.h"
#include "server/http/client_clock.h"
#include "server/http/open_connections.h"
#include "server/http/request_reader.h"
#include "server/http/transport.h"

namespace sconce::server {

class Session {
 public:
  using Clock = IoThread::Clock;
  using error_code = boost::system::error_code;

  // peer: the client's address.
  Session(IoThread& io_thread, boost::asio::ip::tcp::socket socket, Listeners listener, OpenConnections::Slot slot,
          std::string peer);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  void start(IoThread::Sessions::iterator self);
  void check_deadline(Clock::time_point now);
  // By when the model's answer must be there; max() if none is waited for.
  Clock::time_point run_deadline() const noexcept {
    return waits_for_model() ? clock_.deadline() : Clock::time_point::max();
  }
  Listeners listener() const noexcept { return exchange_.listener(); }
  // How it waits for its client; see IoThread::idlest().
  IoThread::Idle idle(Clock::time_point now) const noexcept;
  // Closes the connection to make room for another one. False: it is not idle after all.
  bool make_room() noexcept;
  void leave() noexcept { slot_.release(); }  // counts no more
  // For the end of serving: closes the connection if no request is under way or about to come.
  void close_if_idle(Clock::time_point now);
  // For the end of serving, when time is up: closes a connection whose client has not sent its request or not taken
  // its answer. tell: a client that has not sent its request is answered first.
  void end_client(bool tell) noexcept;
  // For the end of the I/O thread: closes the connection. True: other threads still compute its answer.
  bool abandon() noexcept {
    close();
    return exchange_.computing();
  }

 private:
  friend class IoThread;  // on_notice(), next_notice_
  enum class State : int8_t {
    kHandshake,  // of TLS
    kReading,    // a request, or waiting for one
    kWaiting,    // for another thread, which has the exchange
    kReturned,   // that thread has let go
    kWriting,    // the answer
    kLingering,  // answered for the last time; what the client still sends is thrown away
    kClosed,
  };
  enum class Read : int8_t {
    kNone,
    kNeeded,  // the state goes on when it is over
    kAhead,   // begun while the model had the request before; see watch_client()
  };
  enum class Next : int8_t { kContinue, kWait };  // whether steps() goes on

  // session.cpp: from state to state
  void proceed() noexcept;
  void steps();
  Next handshake();
  Next read_request();
  void follow(Exchange::Next next);
  void begin_answer();
  Next write();
  void finish_request();
  void on_notice() noexcept;
  void linger(bool unread) noexcept;
  void close() noexcept;
  // session_read.cpp: bytes that come
  void read(std::span<char> room);
  bool read_encrypted(std::span<char> room, error_code& ec, size_t& bytes);
  void on_read(error_code ec, size_t bytes) noexcept;
  void on_read_ahead(error_code ec, size_t bytes) noexcept;
  void watch_client() noexcept;
  // session_limits.cpp: its time and memory
  void refuse_late(int status, std::string_view message) noexcept;
  size_t largest() const noexcept { return std::max(reader_.largest(), exchange_.largest()); }
  void trim(size_t keep) noexcept;
  void trim_idle() noexcept;

  bool between_requests() const noexcept { return state_ == State::kReading && reader_.idle(); }
  bool waits_for_model() const noexcept { return state_ == State::kWaiting && exchange_.running(); }
  // Begins an operation of the event loop, which refers to this object until it calls released(). What throws did not
  // begin.
  template <class Begin>
  void begin_operation(Begin&& begin);
  void released() noexcept;
  void retire_if_over() noexcept;

  IoThread& io_thread_;                // whose thread all of this happens on
  IoThread::Sessions::iterator self_;  // in the I/O thread's list
  OpenConnections::Slot slot_;         // counts the connection
  Transport transport_;                // the socket, and TLS
  ClientClock clock_;                  // by when the client, or the model, must have done what is waited for
  RequestReader reader_;               // bytes from the transport -> requests
  AnswerWriter writer_;                // responses -> bytes to the transport
  Exchange exchange_;                  // the request under way
  State state_ = State::kReading;
  Read read_ = Read::kNone;         // the one that is under way
  int operations_ = 0;              // of the event loop, that refer to this object
  error_code ended_;                // what a read ahead ended with: nothing comes any more
  size_t thrown_away_ = 0;          // bytes that came in kLingering
  bool freed_ = false;              // trim() has freed memory that the thread's heap has not given back yet
  Session* next_notice_ = nullptr;  // in the I/O thread's list of sessions that a holder has let go of
};

template <class Begin>
void Session::begin_operation(Begin&& begin) {
  struct Pending {
    int& count;
    bool begun = false;
    explicit Pending(int& operations) : count(operations) { ++count; }
    ~Pending() {
      if (!begun) --count;
    }
  } pending(operations_);
  begin();
  pending.begun = true;
}

}  // namespace sconce::server
