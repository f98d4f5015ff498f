// HttpCall: one HTTP request with its answer, from the parsed header to the Response that the writer sends: route,
// access, the model's run or an admin task, counters, log and trace. It is reused, so that a request allocates no
// memory after warm-up.
//
// One thread at a time works on it. Most requests stay on the I/O thread (kConnection); some are lent to another
// thread:
//
//   kDecoder         decodes a large body             kEncoder         encodes a large answer
//   kDocument        writes a document of all models  kAdministration  changes models and weights
//   Call::Holder     loads the model, reads weights from disk, or runs the model
//
// While a decode loop makes tokens (docs/generate.md), the model holds the call, and the I/O thread writes pieces of
// the answer at the same time. Both touch only the data that DecodeLoop hands to each of them.
//
// A holder uses members of the call, its reader and its transport, and nothing else of the connection. Even if the
// connection closes meanwhile, these live until the holder releases the call with HttpConnection::notify().
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

#include "server/api/api_handler.h"
#include "server/api/call.h"
#include "server/api/routes.h"
#include "server/http/connections/http_connection.h"
#include "server/http/request_reader.h"
#include "server/http/response.h"
#include "server/http/response_writer.h"
#include "server/http/router.h"
#include "server/support/memory/request_budget.h"
#include "server/support/request_id.h"
#include "server/support/thread_pool.h"

namespace sconce::server::api {

class HttpCall final : public http::HttpStream {
 public:
  // The arguments outlive the call.
  HttpCall(ApiHandler& api, http::HttpConnection& connection, http::RequestReader& reader, http::Listeners listener,
           std::string peer);
  HttpCall(const HttpCall&) = delete;

  Next begin(Clock::time_point now) override;
  Next dispatch() override;
  Next resume() override;
  Next next_piece() override { return feed_ ? feed_piece() : answer_piece(); }
  Next refuse(int status, std::string_view message) override;
  Next refuse_length() override;
  void fail(const std::exception_ptr& problem) override;
  void run_out_of_time() override;
  Next end_feed() override;
  http::ResponseWriter::Form finish_response() override;
  void count_answer() noexcept override;
  void end(size_t bytes, Clock::time_point encoded) override;
  uint64_t sent_elsewhere() const noexcept override { return admin_answer_.sent; }

  Waiting waiting() const noexcept override {
    return {.timed = call_.holder() != Call::Holder::kNone, .events = feed_ != nullptr, .reads_ahead = !admin_};
  }
  Clock::time_point deadline() const noexcept override { return call_.deadline(); }
  bool lent() const noexcept override {
    return holder_ != Holder::kConnection || call_.holder() != Call::Holder::kNone;
  }
  bool computing() const noexcept override { return lent() && holder_ != Holder::kAdministration; }
  // Also for a request that makes tokens which no client will read.
  bool cancel_for_client() noexcept override;
  void abandon() noexcept override;
  void take_back() noexcept override;
  Clock::time_point answered() const noexcept override { return call_.inference().answered(); }
  size_t capacity() const noexcept override { return call_.inference().capacity(); }
  void trim(size_t keep) noexcept override;

 private:
  // Limit of JSON that is parsed on the I/O thread, for requests other than inference and uploads.
  static constexpr uint64_t kMaxText = 64 * 1024;
  // Limit of JSON that an admin thread parses: it may name thousands of tensors.
  static constexpr uint64_t kMaxTensors = 64 * 1024 * 1024;

  enum class Holder : int8_t {
    kConnection,      // the I/O thread, unless call_ has a holder
    kDecoder,         // a ThreadPool thread that decodes the body
    kEncoder,         // a ThreadPool thread that encodes the answer
    kDocument,        // a ThreadPool thread that writes a document about all models
    kAdministration,  // the loader thread, or one of AdminThreads
  };

  // http_call.cpp
  Next route_request();
  // One overload for each kind of handler; without it the table of routes does not compile.
  Next answer_by(const OnIoThread& handler);
  Next answer_by(const EventStream& handler);
  Next answer_by(const OnAdminThread& handler);
  Next answer_by(const OnControlThread& handler);  // http_call_admin.cpp
  Next answer_by(const RunsModel& handler);        // http_call_inference.cpp
  bool write(const registry::Catalog& catalog);
  std::string_view body_text() const noexcept;
  bool forbidden() const noexcept;  // whether this listener refuses the route
  bool limit_body();
  Next resume_call();
  void count_run() noexcept;
  void throw_problem();
  void name_response();
  static void notify(void* call) noexcept;  // on the holder's thread
  Next feed_piece();
  void end_piece(bool last);
  // http_call_admin.cpp
  Next begin_admin(uint64_t length);
  bool refuse_access();
  Next start_task(const OnAdminThread& handler);
  Next answer_task();
  void take_admin_answer();
  // http_call_pages.cpp
  void look_at_page();
  bool strange_host();
  bool has_token() const;
  Next answer_preflight();
  // http_call_inference.cpp
  void decode_request();
  Next choose_weights();
  Next run_decoded();
  Next answer_run();
  Next answer_piece();
  void encode_answer();
  Next finish_answer();
  void compress_answer();
  bool cancel() noexcept;
  // http_call_load.cpp
  registry::OnDemand* on_demand() const noexcept;
  bool must_load();
  Next wait_for_load();
  Next go_on_loaded();
  bool hold_model();
  // http_call_heavy.cpp
  bool decodes_long() const noexcept;
  bool answers_long() const noexcept;
  Next decode_elsewhere();
  Next encode_elsewhere();
  bool has_many_models() const;
  Next write_elsewhere();
  void write_document();
  template <void (HttpCall::*work)()>
  Next lend(Holder holder);
  // http_call_records.cpp
  void record_trace(Clock::time_point encoded);
  void count_body(size_t bytes) noexcept;

  ApiHandler& api_;
  http::HttpConnection& connection_;    // notified when a holder releases the call
  http::RequestReader& reader_;         // has the request's header and body
  const Clock::time_point last_begin_;  // a request that begins later is the connection's last
  Holder holder_ = Holder::kConnection;
  bool counted_run_ = false;  // counted by the I/O thread as a request at the model

  // Of the current request.
  http::ResponseWriter::Form form_{.close = true};  // closes the connection, until a request decides otherwise
  std::string access_line_;                         // method and target, if accesses are logged
  std::string cached_target_;  // the target of cached_path_ and route_, because clients repeat their targets
  http::CanonicalTarget cached_path_;
  http::Method cached_method_ = http::Method::kOther;
  http::RouteMatch route_;
  std::string if_none_match_;  // likewise, on the admin listener
  std::string host_;           // of a GET: the client's name for this server
  std::string own_host_;       // a Host that was recognised as this server's
  std::string page_fields_;    // of the answer, for pages in browsers
  bool foreign_page_ = false;  // sent by a page of another origin, which the settings do not allow
  bool routed_ = false;        // route_ belongs to this request
  uint64_t most_body_ = 0;     // maximum body bytes for the route, compressed or not
  size_t counted_ = 0;         // body bytes counted in the metrics

  // Data for holders.
  Call call_;                                     // for a route that runs a model, or waits for one
  ThreadPool::Task task_;                         // for kDecoder and kEncoder
  registry::ModelUse held_;                       // used by an admin task
  std::unique_ptr<rollout::AdminRequest> admin_;  // for the admin port's own routes
  rollout::AdminAnswer admin_answer_;             // written by the task before it notifies
  std::exception_ptr problem_;                    // the exception of a holder
  std::unique_ptr<console::Feed> feed_;           // for a stream of events
};

}  // namespace sconce::server::api
