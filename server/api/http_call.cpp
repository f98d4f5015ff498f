#include "server/api/http_call.h"

#include <algorithm>
#include <random>
#include <utility>

#include "sconce/check.h"
#include "server/api/access.h"
#include "server/api/document_call.h"
#include "server/api/run_record.h"
#include "server/support/log.h"
#include "src/support/excerpt.h"

namespace sconce::server::api {
namespace {

// When a connection that starts now reaches this age; never if it is 0.
std::chrono::steady_clock::time_point end_of_age(std::chrono::microseconds age) {
  using Clock = std::chrono::steady_clock;
  if (age.count() == 0) return Clock::time_point::max();
  static thread_local std::minstd_rand random{std::random_device{}()};
  const double share = std::uniform_real_distribution<double>(1, 1.1)(random);
  return Clock::now() + std::chrono::microseconds(static_cast<int64_t>(static_cast<double>(age.count()) * share));
}

}  // namespace

HttpCall::HttpCall(ApiHandler& api, http::HttpConnection& connection, http::RequestReader& reader,
                   http::Listeners listener, std::string peer)
    : http::HttpStream(listener, std::move(peer)),
      api_(api),
      connection_(connection),
      reader_(reader),
      last_begin_(end_of_age(api.admission().config.http_max_connection_age)),
      call_(api.admission(), api.telemetry(), api.index(), &HttpCall::notify, this) {}

HttpCall::Next HttpCall::begin(Clock::time_point now) {
  const http::RequestHeader& head = reader_.head();
  start_ = now;
  form_ = {head.http11, head.head_only, !reader_.keep_alive() || now > last_begin_};
  call_.begin({head.request_id, head.traceparent, head.weights, head.affinity}, request_id_, now);
  if (head.method == http::Method::kGet) host_.assign(head.host);
  if (api_.admission().config.access_log) {
    access_line_ = shown_in_log(head.method_text) + " " + shown_in_log(head.target);
  }
  const bool all_here = reader_.body_is_here();
  if (head.target != cached_target_ || head.method != cached_method_) {
    cached_target_.clear();
    cached_path_ = http::canonical_target(head.target);
    cached_method_ = head.method;
    cached_target_ = head.target;
    route_ = find_route(cached_path_.path, cached_method_, listener_);
  }
  routed_ = true;
  if (!head.origin.empty() || api_.admission().cors.on()) [[unlikely]]
    look_at_page();
  if (strange_host()) [[unlikely]]
    return refuse(403, "Host is not a name of this server: use an address or localhost, or set allowed_hosts");
  if (head.method_text == "OPTIONS" && !head.page_method.empty() && !page_fields_.empty()) return answer_preflight();
  const bool found = route_.result == http::RouteMatch::Result::kFound;
  // A request without a handler is refused before its body is read.
  if ((!found || forbidden()) && !all_here) return route_request();
  if (refuse_access()) return Next::kAnswer;
  if (listener_ == http::kAdmin && !(found && is_inference(route_of(route_)))) {
    if_none_match_.assign(head.if_none_match);
    const Next next = begin_admin(reader_.content_length());
    if (next != Next::kReadBody) return next;
  }
  if (found && reader_.unfinished() && head.coding != http::Coding::kIdentity && !is_inference(route_of(route_)))
    return refuse(415, "Content-Encoding is supported for inference only");
  if (!all_here && !limit_body()) return refuse_length();
  return Next::kReadBody;
}

// Sets the maximum size of the request from its route. Returns false if the request is larger.
bool HttpCall::limit_body() {
  most_body_ = static_cast<uint64_t>(api_.admission().config.max_body_bytes);
  check_route(api_.admission(), route_);
  // Throws the error of a missing model before the request is read. The maximum size for a model that is not loaded yet
  // is unknown.
  const BodyLimit limit = route_of(route_).body;
  const uint64_t most = limit != BodyLimit::kInputs ? (limit == BodyLimit::kText ? kMaxText : kMaxTensors)
                        : must_load()               ? most_body_
                                      : api_.catalog().ready(route_.model, route_.version)->most_body_bytes();
  most_body_ = std::min(most_body_, most);
  reader_.limit_body(most_body_);
  return reader_.content_length() <= most_body_;
}

HttpCall::Next HttpCall::dispatch() {
  count_body(reader_.body().size());
  return route_request();
}

HttpCall::Next HttpCall::route_request() {
  response_.reset();
  switch (route_.result) {
    case http::RouteMatch::Result::kNotFound:
      answer_error(404, "Not Found", response_);
      return Next::kAnswer;
    case http::RouteMatch::Result::kMethodNotAllowed:
      answer_error(405, "Method Not Allowed", response_);
      response_.fields = route_.allow;
      return Next::kAnswer;
    case http::RouteMatch::Result::kFound:
      break;
  }
  return std::visit([this](const auto& handler) { return answer_by(handler); }, route_of(route_).handler);
}

HttpCall::Next HttpCall::answer_by(const OnIoThread& handler) {
  if (handler.tells_all && has_many_models()) return write_elsewhere();
  return write(api_.catalog()) ? Next::kAnswer : Next::kWait;
}

// Writes the document of a route with OnIoThread. Returns false if its model is being loaded.
bool HttpCall::write(const registry::Catalog& catalog) {
  const RequestView request{
      api_.admission(),       api_.telemetry(), catalog, route_, body_text(), reader_.head().accepts_html,
      reader_.head().accepts, if_none_match_,   host_};
  return DocumentCall(call_).write(std::get<OnIoThread>(route_of(route_).handler), request, response_);
}

HttpCall::Next HttpCall::answer_by(const EventStream& handler) {
  feed_ = handler.open(api_.overview(), cached_path_.query);
  response_.type = http::content_type::kEvents;
  response_.fields = "X-Accel-Buffering: no\r\n";  // proxies that support the field pass events on at once
  response_.streamed = true;
  // The stream ends when the client or the server ends it; no further request follows.
  form_.close = true;
  return feed_piece();
}

HttpCall::Next HttpCall::feed_piece() {
  const bool first = !streaming_;
  response_.begin_piece(form_.http11);
  const size_t before = response_.text_bytes();
  feed_->append(response_.text(), Clock::now());
  if (response_.text_bytes() == before) return Next::kWait;
  end_piece(form_.head_only);
  return first ? Next::kAnswer : Next::kPiece;
}

void HttpCall::end_piece(bool last) {
  response_.end_piece(form_.http11, last);
  streaming_ = !last;
}

HttpCall::Next HttpCall::end_feed() {
  response_.begin_piece(form_.http11);
  feed_->append(response_.text(), Clock::now());
  response_.text().append(": the server is ending\n\n");
  end_piece(true);
  return Next::kPiece;
}

HttpCall::Next HttpCall::answer_by(const OnAdminThread& handler) {
  admin_->body = body_text();
  return start_task(handler);
}

std::string_view HttpCall::body_text() const noexcept {
  const BodyBuffer& body = reader_.body();
  return {reinterpret_cast<const char*>(body.begin()), body.size()};
}

bool HttpCall::forbidden() const noexcept {
  const Route* const route = found_route(route_);
  return route != nullptr && is_forbidden(*route, listener_, api_.admission().config.http_admin);
}

HttpCall::Next HttpCall::resume() {
  if (call_.holder() != Call::Holder::kNone) return resume_call();
  switch (std::exchange(holder_, Holder::kConnection)) {
    case Holder::kConnection:
      return feed_piece();
    case Holder::kDecoder:
      throw_problem();
      return choose_weights();
    case Holder::kEncoder:
      throw_problem();
      return finish_answer();
    case Holder::kDocument:
      throw_problem();
      return Next::kAnswer;
    default:
      throw_problem();
      return answer_task();
  }
}

HttpCall::Next HttpCall::resume_call() {
  const Call::Holder holder = call_.noticed();
  count_run();
  switch (holder) {
    case Call::Holder::kLoader:
      return go_on_loaded();
    case Call::Holder::kReader:
      call_.take_weights();
      return run_decoded();
    default:
      return call_.running() ? answer_piece() : answer_run();
  }
}

// Notifies the I/O thread of whether the model has the request.
void HttpCall::count_run() noexcept {
  if (call_.running() == counted_run_) return;
  counted_run_ = !counted_run_;
  api_.lane_requests(counted_run_ ? 1 : -1);
}

void HttpCall::throw_problem() {
  if (problem_) std::rethrow_exception(std::exchange(problem_, nullptr));
}

void HttpCall::notify(void* call) noexcept { static_cast<HttpCall*>(call)->connection_.notify(); }

void HttpCall::take_back() noexcept {
  if (!call_.take_back()) return;
  count_run();
  holder_ = Holder::kConnection;
  call_.inference().clear();
  call_.drop_answer();
  held_.reset();
}

void HttpCall::abandon() noexcept {
  if (call_.running() && call_.inference().loops()) call_.fail(ErrorCode::kCancelled);
  cancel();
  count_body(0);
  if (computing()) return;  // the holder still uses the rest
  call_.clear();
  feed_.reset();
}

HttpCall::Next HttpCall::refuse(int status, std::string_view message) {
  answer_error(status, message, response_);
  form_.close = true;
  return Next::kAnswer;
}

HttpCall::Next HttpCall::refuse_length() {
  const bool by_setting = most_body_ == static_cast<uint64_t>(api_.admission().config.max_body_bytes);
  return refuse(413, by_setting ? std::string("request body is larger than max_body_bytes")
                                : "request body is larger than " + std::to_string(most_body_) +
                                      (route_of(route_).body == BodyLimit::kInputs
                                           ? " bytes, more than the model's inputs can need"
                                           : " bytes, the most that this route takes"));
}

void HttpCall::fail(const std::exception_ptr& problem) {
  if (lent()) form_.close = true;  // the holder still uses this memory, so it cannot serve another request
  const Failure failure = call_.fail(problem);
  answer_error(failure.status, failure.message, response_);
  if (failure.code == ErrorCode::kQueueFull || failure.code == ErrorCode::kUnavailable)
    response_.fields = "Retry-After: 1\r\n";
}

http::ResponseWriter::Form HttpCall::finish_response() {
  if (reader_.unfinished() || api_.admission().draining.load(std::memory_order_relaxed)) form_.close = true;
  name_response();
  return form_;
}

// Lets clients find the log lines of an error.
void HttpCall::name_response() {
  if (!page_fields_.empty()) response_.page_fields = page_fields_;
  if (request_id_.given() || response_.status >= 400) response_.request_id = request_id_.text();
}

void HttpCall::end(size_t bytes, Clock::time_point encoded) {
  if (api_.admission().config.access_log) log_access(access_line_, response_.status, bytes, Clock::now() - start_);
  call_.drop_answer();
  if (call_.holder() == Call::Holder::kNone) {
    if (call_.traced()) record_trace(encoded);
    call_.inference().show();
    call_.clear();
  }
  count_body(0);
  routed_ = false;
  page_fields_.clear();
  foreign_page_ = false;
  request_id_.begin({});
  admin_.reset();
  feed_.reset();
  form_.http11 = true;
  form_.head_only = false;
  largest_ = std::max(largest_, response_.text().capacity());
}

void HttpCall::trim(size_t keep) noexcept {
  call_.inference().trim(keep);
  if (response_.text().capacity() > keep) response_.text().release();
  largest_ = 0;
}

}  // namespace sconce::server::api
