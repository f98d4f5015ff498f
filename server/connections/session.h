// Session: one connection. Reads requests one after the other, answers each before the next is looked at.
//
// A step that cannot go on waits for its operation: reading, the run on a lane, or writing; deadlines are looked at by
// the worker's tick, which comes in time for those of runs. Confined to the worker's thread, but for the notice of a
// lane.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/answers/routes.h"
#include "server/base/heavy_work.h"
#include "server/base/log.h"
#include "server/connections/worker.h"
#include "server/http/answer_writer.h"
#include "server/http/client_clock.h"
#include "server/http/open_connections.h"
#include "server/http/request_parser.h"
#include "server/http/response.h"
#include "server/http/router.h"
#include "server/http/transport.h"
#include "server/memory/request_budget.h"
#include "server/memory/request_memory.h"
#include "server/observe/trace.h"
#include "server/protocols/inference.h"

namespace sconce {

class Session {
 public:
  using Clock = Worker::Clock;
  using error_code = boost::system::error_code;

  // peer: the client's address.
  Session(Worker& worker, boost::asio::ip::tcp::socket socket, Listeners listener, OpenConnections::Slot slot,
          std::string peer);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  void start(Worker::Sessions::iterator self);
  void check_deadline(Clock::time_point now);
  // By when the model's answer must be there; max() if none is waited for.
  Clock::time_point run_deadline() const noexcept {
    return state_ == State::kRunning ? clock_.deadline() : Clock::time_point::max();
  }
  Listeners listener() const noexcept { return listener_; }
  // How it waits for its client; see Worker::idlest().
  Worker::Idle idle(Clock::time_point now) const noexcept;
  // Closes it, for another's sake. False: it is not idle after all.
  bool make_room() noexcept;
  void leave() noexcept { slot_.release(); }  // counts no more
  // For the end of serving: closes the connection if no request is under way or about to come.
  void close_if_idle(Clock::time_point now);
  // For the end of serving, when time is up: lets go of a client that has not sent its request or not taken its
  // answer. tell: who has not sent it gets an answer to that.
  void end_client(bool tell) noexcept;
  // For the end of the worker: closes the connection. True: the model still works on its request.
  bool abandon() noexcept {
    close();
    return running_ || away_;
  }

 private:
  // Memory that a connection keeps for its next request.
  static constexpr size_t kKeepBytes = 256 * 1024;
  // Of what is no inference and no upload: JSON that is read by the thread that other connections wait for.
  static constexpr uint64_t kMostText = 64 * 1024;

  friend class Worker;  // on_notice()
  enum class State : int8_t {
    kHandshake,  // of TLS
    kHeader,     // reading a request's header, or waiting for one
    kFixedBody,  // reading a body of known length
    kChunkedBody,
    kAway,       // another thread reads the body or writes the answer: it has all that is inference_'s
    kDecoded,    // that has read it
    kRunning,    // the model: in its queue or on a lane
    kWaiting,    // for the control thread, or one of the admin side
    kDone,       // that has done it
    kAnswering,  // the run is over
    kEncoded,    // the answer stands
    kWriting,
    kLingering,  // answered for the last time; what the client still sends is thrown away
    kClosed,
  };
  enum class Next : int8_t { kContinue, kWait };

  void proceed() noexcept;
  void steps();
  Next handshake();
  // session_read.cpp
  uint64_t body_limit() const noexcept;
  bool limit_body();
  void refuse_length();
  Next read_header();
  bool skip_empty_line() noexcept;
  void begin_body();
  Next read_fixed_body();
  Next read_chunked_body();
  Next dispatch();
  void inflate_body(uint64_t most);
  void read(char* at, size_t room);
  bool read_encrypted(char* at, size_t room, error_code& ec, size_t& bytes);
  void on_read(error_code ec, size_t bytes) noexcept;
  void route_request();
  // One for each kind of handler, or the table of routes does not compile.
  void answer_by(const Here& handler);
  void answer_by(const OnAdminThread& handler);
  void answer_by(const OnControlThread& handler);  // session_admin.cpp
  void answer_by(const OnLane& handler);           // session_inference.cpp
  std::string_view body_text() const noexcept;
  // session_admin.cpp
  bool begin_admin(uint64_t length);
  bool refuse_access();
  void start_task(const OnAdminThread& handler);
  void answer_waited();
  void take_admin_answer();
  // session_answer.cpp
  void answer_exception(const std::exception_ptr& problem);
  void refuse(int status, std::string_view message);  // and close
  void refuse_late(int status, std::string_view message) noexcept;
  void begin_answer();
  Next write();
  void on_writable(error_code ec) noexcept;
  void finish_request();

  static void notify(void* session) noexcept;  // on the thread that did it
  void on_notice() noexcept;
  bool forbidden() const noexcept;  // the route, on this listener
  void linger() noexcept;
  void close() noexcept;
  void released() noexcept;  // an operation is over
  void trim(size_t keep) noexcept;
  void trim_idle() noexcept;
  // session_inference.cpp
  void decode_request();
  void run_decoded();
  void encode_answer();
  void finish_answer();
  void watch_client() noexcept;
  bool stop_waiting() noexcept;
  void client_left(bool reset) noexcept;
  void run_out_of_time();
  void compress_answer();
  // session_heavy.cpp
  bool decodes_long() const noexcept;
  bool answers_long() const noexcept;
  void go_away(void (Session::*work)(), State then);
  void come_back() noexcept;
  void end_away();
  // session_records.cpp
  void log_access() const;
  void trace_inputs();
  void trace_outputs();
  void record_trace();
  void count_body(size_t bytes) noexcept;
  const BodyBuffer& body() const noexcept { return compressed_ ? plain_ : body_; }
  // What the client must keep to while it sends or takes something.
  Pace pace(std::chrono::microseconds grace) const noexcept;
  template <class Begin>
  void begin_operation(Begin&& begin);

  Worker& worker_;
  Transport transport_;
  ClientClock clock_;
  AnswerWriter writer_{transport_, clock_};
  const Listeners listener_;
  OpenConnections::Slot slot_;
  const std::string peer_;  // the client's address, for the log
  Worker::Sessions::iterator self_;
  State state_ = State::kHeader;
  int pending_ = 0;          // operations under way that refer to this object
  bool reading_ = false;     // one of them is a read
  bool ahead_ = false;       // into in_, before the request under way is answered
  error_code ended_;         // what a read ahead ended with: nothing comes any more
  bool running_ = false;     // the model has not let go of inference_
  bool away_ = false;        // another thread has not
  bool keep_alive_ = false;  // after the answer
  bool body_left_ = false;   // the request's body was not read to its end
  bool saw_bytes_ = false;   // of the request that is being read
  bool empty_line_ = false;  // there was one before it

  // Bytes read and not yet used: [begin_, end_). The header that is being parsed starts at header_.
  std::unique_ptr<char[]> in_;
  const size_t in_capacity_;
  size_t header_ = 0, begin_ = 0, end_ = 0;
  std::optional<RequestParser> parser_;

  // Of the request under way.
  Clock::time_point start_;
  bool head_only_ = false, http11_ = true;
  std::optional<uint64_t> json_length_;
  size_t body_bytes_ = 0;  // of a fixed body
  BodyBuffer body_;
  std::string cached_target_;  // the target that cached_path_ is of; clients repeat theirs
  CanonicalTarget cached_path_;
  Method cached_method_ = Method::kOther;
  RouteMatch route_;
  std::string access_line_;  // method and target, if accesses are logged
  RequestId request_id_;
  uint64_t most_body_ = 0;   // bytes that the route takes, compressed or not
  bool compressed_ = false;  // the body, whose plain bytes are in plain_
  BodyBuffer plain_;
  TraceLevels traced_;
  std::vector<TraceTensor> trace_tensors_;
  bool routed_ = false;  // route_ is of the request under way
  size_t counted_ = 0;   // bytes of its body, as metrics have them
  std::optional<TraceParent> trace_parent_;

  Inference inference_;
  std::exception_ptr control_problem_;  // of kDone
  // Of kAway: what is done there, what comes then, what went wrong.
  void (Session::*away_work_)() = nullptr;
  State after_away_ = State::kClosed;
  std::exception_ptr away_problem_;
  HeavyWork::Task away_task_;
  Response response_;
  BudgetShare answer_room_;              // of a large answer, until it is sent
  std::unique_ptr<AdminRequest> admin_;  // of the admin port's own routes
  AdminAnswer admin_answer_;             // written by the task before its notice
  size_t thrown_away_ = 0;               // bytes that came while lingering
  size_t largest_ = 0;                   // bytes of the largest request since memory was trimmed
  bool freed_ = false;                   // by trimming, and the worker's heap has it still
  Session* next_notice_ = nullptr;       // of the worker
};

// Begins something that refers to this object until it is over. What throws did not begin.
template <class Begin>
void Session::begin_operation(Begin&& begin) {
  struct Pending {
    int& count;
    bool begun = false;
    explicit Pending(int& pending) : count(pending) { ++count; }
    ~Pending() {
      if (!begun) --count;
    }
  } pending(pending_);
  begin();
  pending.begun = true;
}

}  // namespace sconce
