// Exchange: one request with its answer, from the head that the reader parsed to the Response that the writer sends. It
// includes route, permission, the model's run or an administration task, counts, log and trace. It is reused, so that a
// request needs no new memory after warm-up.
//
// One thread at a time works on it. Most requests stay on the I/O thread (kSession); others are lent:
//
//   kSession --> kDecoder --> kSession --> kReader --> kSession --> kModel --> kSession --> kEncoder --> kSession
//               a large body              weights on disk         a run on a lane         a large answer
//   kSession --> kAdministration --> kSession
//               models and weights
//   kSession --> kLoader --> kSession
//               a model that is loaded on demand, before the steps above
//
// While a loop makes tokens (docs/generate.md), the model has the exchange, and the I/O thread writes pieces of the
// answer all the same: they touch only what TokenLoop gives each of them.
//
// A holder uses members of the exchange, its reader and its transport, nothing of the session. Even if the connection
// closes meanwhile, these live until the holder lets go, which it reports by IoThread::notify().
//
// Used only on the I/O thread, except by a holder.
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
#include "server/models/on_demand.h"
#include "server/observe/traces/trace.h"
#include "server/protocols/inference.h"

namespace sconce::server {

class Exchange {
 public:
  using Clock = IoThread::Clock;
  // What the session does next.
  enum class Next : int8_t {
    kReadBody,  // the request is admitted: read its body, then call dispatch()
    kWait,      // another thread has the exchange: wait for its notice, then call resume()
    kAnswer,    // the response is ready: send it
    kPiece,     // so is a further piece of it
    kSent,      // another thread has sent the answer: close the connection
    kHangUp,    // the work is done, but there is no memory for the answer
  };

  // peer: the client's address. session: is told when a holder lets go. All other arguments outlive the exchange too.
  Exchange(IoThread& io_thread, Session& session, RequestReader& reader, Listeners listener, std::string peer);
  Exchange(const Exchange&) = delete;

  // The steps of a request. What they throw is for fail().
  Next begin(Clock::time_point now);  // the reader has its head
  Next dispatch();                    // the reader has its body
  Next resume();                      // the holder has let go
  // Other ways to end a request, after which the response is ready. refuse() also ends the connection.
  Next refuse(int status, std::string_view message);
  Next refuse_length();  // the body exceeds what limit_body() allowed
  void fail(const std::exception_ptr& problem);
  void run_out_of_time();
  // Adds the request id before the answer is sent. Returns what else its head depends on.
  AnswerWriter::Form finish_response();
  void count_answer() noexcept;
  // The answer of so many bytes was sent; its encoding ended at `encoded`.
  void end(size_t bytes, Clock::time_point encoded);
  // Bytes of an answer that another thread has sent.
  uint64_t sent_elsewhere() const noexcept { return admin_answer_.sent; }

  // Whether further pieces of the answer follow: call next_piece() once those that are ready are sent.
  bool streaming() const noexcept { return streaming_; }
  Next next_piece() { return feed_ ? feed_piece() : answer_piece(); }
  // Whether the answer is a stream of events that nobody computes: it has a further piece when its feed has one, so ask
  // now and then by resume().
  bool feeding() const noexcept { return feed_ != nullptr; }
  Next end_feed();  // the last piece

  // Whether another thread has the exchange.
  bool lent() const noexcept { return holder_ != Holder::kSession; }
  bool running() const noexcept { return holder_ == Holder::kModel; }  // or waits in its queue
  // Whether the client's next bytes may be read while another thread has the exchange.
  bool may_read_ahead() const noexcept { return !admin_; }
  bool loading() const noexcept { return holder_ == Holder::kLoader; }  // waits until the model is loaded
  bool computing() const noexcept { return lent() && holder_ != Holder::kAdministration; }
  // When the model's answer is due.
  Clock::time_point deadline() const noexcept { return loading() ? load_deadline_ : inference_.deadline(); }
  // The client left while the model had the request. Returns true if the request was still waiting, and is then over,
  // or makes tokens that nobody will see.
  bool cancel_for_client() noexcept;
  // The connection closed. What a holder uses stays until take_back().
  void abandon() noexcept;
  // The holder let go of a request that nobody waits for any more.
  void take_back() noexcept;

  Clock::time_point start() const noexcept { return start_; }  // of the last request that begin() took
  // When the answer was ready, if it is a model's; zero for others.
  Clock::time_point answered() const noexcept { return inference_.answered(); }

  Response& response() noexcept { return response_; }
  const RequestId& request_id() const noexcept { return request_id_; }
  const std::string& peer() const noexcept { return peer_; }
  Listeners listener() const noexcept { return listener_; }

  // Bytes of the largest answer's text since the last trim().
  size_t largest() const noexcept { return largest_; }
  size_t capacity() const noexcept { return inference_.capacity(); }
  // Frees memory beyond `keep` bytes. No request may be under way.
  void trim(size_t keep) noexcept;

 private:
  // For requests that are no inference and no upload: JSON that is read on the I/O thread.
  static constexpr uint64_t kMostText = 64 * 1024;
  // For JSON that an administration's thread reads: it names tensors, by the thousand.
  static constexpr uint64_t kMostTensors = 64 * 1024 * 1024;

  enum class Holder : int8_t {
    kSession,         // nobody else
    kDecoder,         // a thread of HeavyWork that reads the body
    kModel,           // the model, in its queue or on a lane
    kReader,          // the thread that reads the weights it asks for
    kEncoder,         // a thread of HeavyWork that writes the answer
    kDocument,        // the same, for a document about all models
    kAdministration,  // the control thread, or one of AdminThreads
    kLoader,          // a thread of Demand, which loads the model
  };

  // exchange.cpp
  Next route_request();
  // One for each kind of handler; without it the table of routes does not compile.
  Next answer_by(const Here& handler);
  Next answer_by(const OnFeed& handler);
  Next answer_by(const OnAdminThread& handler);
  Next answer_by(const OnControlThread& handler);  // exchange_admin.cpp
  Next answer_by(const OnLane& handler);           // exchange_inference.cpp
  std::string_view body_text() const noexcept;
  bool forbidden() const noexcept;  // whether this listener refuses the route
  void check_set() const;
  bool limit_body();
  Holder let_go() noexcept;
  void throw_problem();
  void log_failure(const Failure& failure);
  void name_response();
  static void notify(void* exchange) noexcept;  // on the holder's thread
  Next feed_piece();
  void end_piece(bool last);
  // exchange_admin.cpp
  Next begin_admin(uint64_t length);
  bool refuse_access();
  // exchange_pages.cpp
  void look_at_page();
  bool strange_host();
  bool has_token() const;
  Next answer_preflight();
  Next start_task(const OnAdminThread& handler);
  Next answer_task();
  void take_admin_answer();
  // exchange_inference.cpp
  void decode_request();
  Next choose_weights();
  Next run_decoded();
  Next answer_run();
  Next answer_piece();
  void encode_answer();
  Next finish_answer();
  void compress_answer();
  bool cancel() noexcept;
  // exchange_demand.cpp
  OnDemand* on_demand() const noexcept;
  bool must_load(const Catalog& catalog) const;
  bool must_load();
  Next wait_for_load();
  Next go_on_loaded();
  bool hold_model();
  // exchange_heavy.cpp
  bool decodes_long() const noexcept;
  bool answers_long() const noexcept;
  Next decode_elsewhere();
  Next encode_elsewhere();
  bool has_many_models() const;
  Next write_elsewhere();
  void write_document();
  void write(const Catalog& catalog);
  template <void (Exchange::*work)()>
  Next lend(Holder holder);
  // exchange_records.cpp
  void trace_inputs();
  void trace_outputs();
  void record_trace(Clock::time_point encoded);
  void count_body(size_t bytes) noexcept;

  IoThread& io_thread_;
  Session& session_;       // is told when a holder lets go
  RequestReader& reader_;  // has the request's head and body
  const Listeners listener_;
  const std::string peer_;              // the client's address, for the log
  const Clock::time_point last_begin_;  // a request that begins later is the connection's last
  Holder holder_ = Holder::kSession;

  // Of the request under way.
  Clock::time_point start_;                 // when its head was complete
  AnswerWriter::Form form_{.close = true};  // closes, until a request says otherwise
  RequestId request_id_;                    // what logs, traces and the answer call it
  std::string access_line_;                 // method and target, if accesses are logged
  std::string cached_target_;               // the target of cached_path_ and route_; clients repeat theirs
  CanonicalTarget cached_path_;
  Method cached_method_ = Method::kOther;
  RouteMatch route_;
  std::string weights_, affinity_;  // header fields of those names
  std::string if_none_match_;       // the same, on the admin listener
  std::string host_;                // of a GET: what the client calls this server
  std::string own_host_;            // a Host that was found to be this server's
  std::string page_fields_;         // of the answer, for pages in browsers
  bool foreign_page_ = false;       // a page of another origin sent it, which the settings do not allow for
  bool routed_ = false;             // route_ belongs to this request
  uint64_t most_body_ = 0;          // bytes of body that the route takes, compressed or not
  size_t counted_ = 0;              // bytes of its body in the metrics
  TraceLevels traced_;              // what a trace records of it; none: it is not traced
  std::vector<TraceTensor> trace_tensors_;
  std::optional<TraceParent> trace_parent_;  // the client's own trace, if any

  // What holders work on.
  Inference inference_;    // for a route that runs a model
  HeavyWork::Task task_;   // for kDecoder and kEncoder
  Demand::Waiter demand_;  // for kLoader
  Clock::time_point load_deadline_;
  ModelUse held_;                        // by administration
  std::unique_ptr<AdminRequest> admin_;  // for the admin port's own routes
  AdminAnswer admin_answer_;             // written by the task before its notice
  std::exception_ptr problem_;           // the exception of a holder
  std::unique_ptr<Feed> feed_;           // for a stream of events
  Response response_;                    // the answer
  bool streaming_ = false;               // its head is ready or sent, its end is not
  BudgetShare answer_room_;              // of a large answer, until it is sent
  size_t largest_ = 0;                   // bytes of the largest answer's text since the last trim()
};

}  // namespace sconce::server
