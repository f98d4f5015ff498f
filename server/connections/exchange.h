// Exchange: one request with its answer, from the head that the reader has parsed to the Response that the writer
// sends: route, permission, the model's run or an administration task, counts, log and trace. Reused from request to
// request, so that a request takes no memory after warm-up.
//
// One thread at a time works on it. Most requests stay on the I/O thread (kSession); the others are lent:
//
//   kSession --> kDecoder --> kSession --> kModel --> kSession --> kEncoder --> kSession
//               a large body              a run on a lane         a large answer
//   kSession --> kAdministration --> kSession
//               models and weights
//
// A holder has members of the exchange, its reader and its transport, and nothing of the session. Until it has let go,
// which the session learns by IoThread::notify(), neither of them goes away, even if the connection is closed
// meanwhile.
//
// Confined to the I/O thread, but for what a holder calls.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/answers/routes.h"
#include "server/base/heavy_work.h"
#include "server/base/request_id.h"
#include "server/connections/io_thread.h"
#include "server/http/answer_writer.h"
#include "server/http/request_reader.h"
#include "server/http/response.h"
#include "server/http/router.h"
#include "server/memory/request_budget.h"
#include "server/observe/trace.h"
#include "server/protocols/inference.h"

namespace sconce::server {

class Exchange {
 public:
  using Clock = IoThread::Clock;
  // What the session does next.
  enum class Next : int8_t {
    kReadBody,  // the request is admitted: read its body, then dispatch()
    kWait,      // another thread has the exchange: wait for its notice, then resume()
    kAnswer,    // the response stands: send it
    kHangUp,    // what was asked is done, but there is no memory to say so
  };

  // peer: the client's address. session: is told when a holder has let go. All others outlive the exchange as well.
  Exchange(IoThread& io_thread, Session& session, RequestReader& reader, Listeners listener, std::string peer);
  Exchange(const Exchange&) = delete;

  // The steps of a request. What they throw is for fail().
  Next begin(Clock::time_point now);  // the reader has its head
  Next dispatch();                    // the reader has its body
  Next resume();                      // the holder has let go
  // Other ends of it, after which the response stands. The connection ends with refuse().
  Next refuse(int status, std::string_view message);
  Next refuse_length();  // the body is longer than limit_body() has allowed
  void fail(const std::exception_ptr& problem);
  void run_out_of_time();
  // The answer is about to be sent: its request id. What else its head depends on.
  AnswerWriter::Form finish_response();
  void count_answer() noexcept;
  // The answer was sent, of so many bytes, since `encoded`.
  void end(size_t bytes, Clock::time_point encoded);

  // Another thread has it.
  bool lent() const noexcept { return holder_ != Holder::kSession; }
  bool running() const noexcept { return holder_ == Holder::kModel; }  // in its queue or on a lane
  bool computing() const noexcept { return lent() && holder_ != Holder::kAdministration; }
  // By when the model's answer must be there.
  Clock::time_point deadline() const noexcept { return inference_.deadline(); }
  // The client has gone while the model had the request. True: the request was still waiting, and nobody has it now.
  bool cancel_for_client() noexcept;
  // The connection has closed. What a holder has stays until take_back().
  void abandon() noexcept;
  // The holder has let go of what nobody waits for any more.
  void take_back() noexcept;

  Response& response() noexcept { return response_; }
  const RequestId& request_id() const noexcept { return request_id_; }
  const std::string& peer() const noexcept { return peer_; }
  Listeners listener() const noexcept { return listener_; }

  // Bytes of the largest answer's text since the last trim().
  size_t largest() const noexcept { return largest_; }
  size_t capacity() const noexcept { return inference_.capacity(); }
  // Frees memory beyond `keep` bytes. No request is under way.
  void trim(size_t keep) noexcept;

 private:
  // Of what is no inference and no upload: JSON that is read by the thread that other connections wait for.
  static constexpr uint64_t kMostText = 64 * 1024;

  enum class Holder : int8_t {
    kSession,         // nobody else
    kDecoder,         // a thread of HeavyWork, which reads the body
    kModel,           // the model, in its queue or on a lane
    kEncoder,         // a thread of HeavyWork, which writes the answer
    kAdministration,  // the control thread, or one of AdminThreads
  };

  // exchange.cpp
  Next route_request();
  // One for each kind of handler, or the table of routes does not compile.
  Next answer_by(const Here& handler);
  Next answer_by(const OnAdminThread& handler);
  Next answer_by(const OnControlThread& handler);  // exchange_admin.cpp
  Next answer_by(const OnLane& handler);           // exchange_inference.cpp
  std::string_view body_text() const noexcept;
  bool forbidden() const noexcept;  // the route, on this listener
  bool limit_body();
  Holder let_go() noexcept;
  void throw_problem();
  void name_response();
  static void notify(void* exchange) noexcept;  // the holder's thread
  // exchange_admin.cpp
  Next begin_admin(uint64_t length);
  bool refuse_access();
  Next start_task(const OnAdminThread& handler);
  Next answer_task();
  void take_admin_answer();
  // exchange_inference.cpp
  void decode_request();
  Next run_decoded();
  Next answer_run();
  void encode_answer();
  Next finish_answer();
  void compress_answer();
  bool cancel() noexcept;
  // exchange_heavy.cpp
  bool decodes_long() const noexcept;
  bool answers_long() const noexcept;
  Next decode_elsewhere();
  Next encode_elsewhere();
  template <void (Exchange::*work)()>
  Next lend(Holder holder);
  // exchange_records.cpp
  void log_access(size_t bytes) const;
  void trace_inputs();
  void trace_outputs();
  void record_trace(Clock::time_point encoded);
  void count_body(size_t bytes) noexcept;

  IoThread& io_thread_;
  Session& session_;       // whose notice it is when a holder lets go
  RequestReader& reader_;  // has the request's head and body
  const Listeners listener_;
  const std::string peer_;  // the client's address, for the log
  Holder holder_ = Holder::kSession;

  // Of the request under way.
  Clock::time_point start_;                 // when its head was there
  AnswerWriter::Form form_{.close = true};  // close: where no request has said otherwise
  RequestId request_id_;                    // what logs, traces and the answer call it
  std::string access_line_;                 // method and target, if accesses are logged
  std::string cached_target_;               // the target that cached_path_ and route_ are of; clients repeat theirs
  CanonicalTarget cached_path_;
  Method cached_method_ = Method::kOther;
  RouteMatch route_;
  bool routed_ = false;     // route_ is of the request under way
  uint64_t most_body_ = 0;  // bytes that the route takes, compressed or not
  size_t counted_ = 0;      // bytes of its body, as metrics have them
  TraceLevels traced_;      // what a trace says of it; nothing: it is not traced
  std::vector<TraceTensor> trace_tensors_;
  std::optional<TraceParent> trace_parent_;  // the client's own trace that it belongs to

  // What holders work on.
  Inference inference_;                  // of a model's route
  HeavyWork::Task task_;                 // for kDecoder and kEncoder
  std::unique_ptr<AdminRequest> admin_;  // of the admin port's own routes
  AdminAnswer admin_answer_;             // written by the task before its notice
  std::exception_ptr problem_;           // what went wrong there
  Response response_;                    // the answer
  BudgetShare answer_room_;              // of a large answer, until it is sent
  size_t largest_ = 0;                   // bytes of the largest answer's text since the last trim()
};

}  // namespace sconce::server
