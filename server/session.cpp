#include "server/session.h"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/http/error.hpp>
#include <cstring>

#include "sconce/check.h"
#include "server/failure.h"
#include "server/handlers.h"
#include "server/log.h"

namespace sconce {
namespace {

namespace asio = boost::asio;

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
// Requests of one connection that are answered in a row before others have their turn.
constexpr int kInARow = 16;
// Memory that an idle connection keeps.
constexpr size_t kKeepBytes = 256 * 1024;
// After a refusal the client may go on sending this much, this long, so that it sees the answer rather than a reset.
constexpr size_t kLingerBytes = 4 * 1024 * 1024;
constexpr std::chrono::seconds kLingerTime{2};
// In a shutdown, the time that a new connection has for its first bytes.
constexpr std::chrono::milliseconds kFresh{300};

}  // namespace

Session::Session(Worker& worker, asio::ip::tcp::socket socket, Listeners listener)
    : worker_(worker),
      transport_(std::move(socket), worker.tls_of(listener)),
      listener_(listener),
      in_capacity_(static_cast<size_t>(worker.service().config.max_header_bytes)),
      inference_(worker.index(), &Session::notify, this) {
  in_ = std::make_unique_for_overwrite<char[]>(in_capacity_);
}

Session::~Session() {
  if (largest_ > kKeepBytes) worker_.freed_much();
}

void Session::start(Worker::Sessions::iterator self) {
  self_ = self;
  error_code ec;
  transport_.socket().set_option(asio::ip::tcp::no_delay(true), ec);
  transport_.socket().non_blocking(true, ec);
  const ServerConfig& config = worker_.service().config;
  phase_start_ = Clock::now();
  deadline_ = phase_start_ + (transport_.encrypted() ? config.tls_handshake_timeout : config.header_timeout);
  if (transport_.encrypted()) state_ = State::kHandshake;
  proceed();
}

// The loop, and what stops it: the one place where a request's exceptions end.
void Session::proceed() noexcept {
  const LogRequest log_request(request_id_);
  for (;;) {
    std::exception_ptr problem;
    try {
      return steps();
    } catch (...) {
      problem = std::current_exception();
    }
    try {
      answer_exception(problem);
    } catch (...) {
      return close();
    }
  }
}

void Session::steps() {
  for (int answered = 0;;) {
    Next next = Next::kContinue;
    switch (state_) {
      case State::kHandshake:
        next = handshake();
        break;
      case State::kHeader:
        if (answered >= kInARow) {
          ++pending_;
          asio::post(worker_.context(), [this] {
            released();
            if (state_ == State::kHeader) proceed();
          });
          return;
        }
        next = read_header();
        break;
      case State::kFixedBody:
        next = read_fixed_body();
        break;
      case State::kChunkedBody:
        next = read_chunked_body();
        break;
      case State::kAnswering:
        inference_.encode(response_);
        compress_answer();
        inference_.succeed();
        begin_answer();
        break;
      case State::kDone:
        answer_waited();
        break;
      case State::kWriting:
        next = write();
        if (next == Next::kContinue) ++answered;
        break;
      case State::kRunning:
      case State::kWaiting:
      case State::kLingering:
      case State::kClosed:
        return;
    }
    if (next == Next::kWait) return;
  }
}

// Of an upload of weights, which begin_admin() takes, the limit is its own.
uint64_t Session::body_limit() const noexcept {
  return listener_ == kAdmin ? INT64_MAX : static_cast<uint64_t>(worker_.service().config.max_body_bytes);
}

Session::Next Session::handshake() {
  error_code ec;
  if (transport_.handshake(ec)) {
    state_ = State::kHeader;
    phase_start_ = Clock::now();
    deadline_ = phase_start_ + worker_.service().config.header_timeout;
    return Next::kContinue;
  }
  if (ec != asio::error::would_block) {
    log_debug("TLS handshake failed: {}", printable(transport_.handshake_problem()));
    close();
    return Next::kWait;
  }
  ++pending_;
  transport_.socket().async_wait(transport_.wait_type(), [this](error_code e) {
    released();
    if (state_ != State::kHandshake) return;
    if (e) return close();
    proceed();
  });
  return Next::kWait;
}

Session::Next Session::read_header() {
  if (!parser_) {
    parser_.emplace(body_limit());
    header_ = begin_;
  }
  if (begin_ != end_) {
    if (!saw_bytes_) {
      saw_bytes_ = true;
      deadline_ = Clock::now() + worker_.service().config.header_timeout;
    }
    boost::beast::error_code ec;
    begin_ += parser_->put(asio::const_buffer(in_.get() + begin_, end_ - begin_), ec);
    if (!ec && parser_->is_header_done()) {
      begin_body();
      return Next::kContinue;
    }
    if (ec && ec != boost::beast::http::error::need_more) {
      body_left_ = true;
      refuse(parser_->status(ec), parser_->problem(ec));
      return Next::kContinue;
    }
  }
  if (reading_) return Next::kWait;
  if (!saw_bytes_) header_ = begin_ = end_ = 0;
  if (end_ == in_capacity_) {
    if (header_ == 0) {
      body_left_ = true;
      refuse(431, "request header is larger than max_header_bytes");
      return Next::kContinue;
    }
    // The header started behind another request: move it to the front and parse it anew.
    std::memmove(in_.get(), in_.get() + header_, end_ - header_);
    end_ -= header_;
    header_ = begin_ = 0;
    parser_.emplace(body_limit());
  }
  read(in_.get() + end_, in_capacity_ - end_);
  return Next::kWait;
}

void Session::begin_body() {
  const ServerConfig& config = worker_.service().config;
  const RequestHead& head = parser_->head();
  start_ = phase_start_ = Clock::now();
  head_only_ = head.head_only;
  http11_ = head.http11;
  json_length_ = head.json_length;
  keep_alive_ = parser_->keep_alive();
  request_id_.begin(head.request_id);
  if (worker_.service().tracer.enabled()) trace_parent_ = TraceParent::parse(head.traceparent);
  if (config.access_log) {
    access_line_ = printable(head.method_text) + " " + printable(head.target);
  }
  const uint64_t length = parser_->content_length().value_or(0);
  const bool all_here = !parser_->chunked() && length <= end_ - begin_;
  // Until the body was taken, whatever goes wrong must end the connection: its bytes are no request.
  body_left_ = parser_->chunked() || length != 0;
  if (head.target != cached_target_ || head.method != cached_method_) {
    cached_target_.clear();
    cached_path_ = canonical_target(head.target);
    cached_method_ = head.method;
    cached_target_ = head.target;
    route_ = find_route(cached_path_.path, cached_method_, listener_);
  }
  routed_ = true;
  // What is asked of nobody is refused before its body is read.
  if ((route_.result != RouteMatch::Result::kFound || forbidden()) && !all_here) return route_request();
  if (refuse_access()) return;
  if (listener_ == kAdmin && begin_admin(length)) return;
  if (head.expects_continue && !all_here) {
    // A client that waits for this has room for it; one that does not take it is not worth waiting for.
    error_code ec;
    const asio::const_buffer line = asio::buffer(kContinue);
    if (transport_.write_some({&line, &line + 1}, ec) != kContinue.size()) return close();
  }
  body_bytes_ = static_cast<size_t>(length);
  body_.prepare(body_bytes_, static_cast<size_t>(std::min<uint64_t>(json_length_.value_or(0), length)));
  if (parser_->chunked()) {
    parser_->collect(body_);
    state_ = State::kChunkedBody;
  } else {
    state_ = State::kFixedBody;
  }
  if (!all_here) extend_deadline(config.body_timeout, body_bytes_);
}

Session::Next Session::read_fixed_body() {
  const size_t here = std::min(body_bytes_ - body_.size(), end_ - begin_);
  body_.append(in_.get() + begin_, here);
  begin_ += here;
  if (body_.size() < body_bytes_) {
    if (!reading_) read(reinterpret_cast<char*>(body_.end()), body_bytes_ - body_.size());
    return Next::kWait;
  }
  return dispatch();
}

Session::Next Session::read_chunked_body() {
  parser_->eager(true);
  if (begin_ != end_) {
    boost::beast::error_code ec;
    begin_ += parser_->put(asio::const_buffer(in_.get() + begin_, end_ - begin_), ec);
    if (ec && ec != boost::beast::http::error::need_more) {
      refuse(parser_->status(ec), parser_->problem(ec));
      return Next::kContinue;
    }
    if (parser_->is_done()) return dispatch();
    extend_deadline(worker_.service().config.body_timeout, body_.size());
  }
  if (reading_) return Next::kWait;
  // Nothing before begin_ is needed any more.
  std::memmove(in_.get(), in_.get() + begin_, end_ - begin_);
  end_ -= begin_;
  header_ = begin_ = 0;
  if (end_ == in_capacity_) {
    refuse(400, "malformed chunk: header or trailer too large");
    return Next::kContinue;
  }
  read(in_.get() + end_, in_capacity_ - end_);
  return Next::kWait;
}

Session::Next Session::dispatch() {
  body_left_ = false;
  largest_ = std::max(largest_, body_.size());
  count_body(body_.size());
  if (const Coding coding = parser_->head().coding;
      coding != Coding::kIdentity && route_.result == RouteMatch::Result::kFound) {
    compressed_ = true;
    // Of a body that is refused halfway as well.
    struct Noted {
      size_t& largest;
      const BodyBuffer& plain;
      ~Noted() { largest = std::max(largest, plain.size()); }
    } noted{largest_, plain_};
    decompress(coding, body_, static_cast<size_t>(json_length_.value_or(0)),
               static_cast<uint64_t>(worker_.service().config.max_inflated_bytes), plain_);
  }
  route_request();
  return Next::kContinue;
}

void Session::route_request() {
  response_.reset();
  switch (route_.result) {
    case RouteMatch::Result::kNotFound:
      answer_error(404, "Not Found", response_);
      return begin_answer();
    case RouteMatch::Result::kMethodNotAllowed:
      answer_error(405, "Method Not Allowed", response_);
      response_.fields = route_.allow;
      return begin_answer();
    case RouteMatch::Result::kFound:
      break;
  }
  SCONCE_CHECK(!forbidden(), kForbidden, "this is for the administration listener (settings admin and http_admin)");
  if (run_model()) return;
  if (route_.action == Action::kModelLoad || route_.action == Action::kModelUnload) return control_model();
  const std::string_view text(reinterpret_cast<const char*>(body().begin()), body().size());
  if (admin_) {
    admin_->body = text;
    return start_task();
  }
  handle(worker_.service(), worker_.catalog(), route_, text, parser_->head().accepts_html, response_);
  begin_answer();
}

bool Session::forbidden() const noexcept {
  return route_.control && listener_ == kPublic && !worker_.service().config.http_admin;
}

void Session::notify(void* session) noexcept {
  Session& self = *static_cast<Session*>(session);
  self.worker_.notify(self);
}

void Session::on_notice() noexcept {
  if (state_ == State::kWaiting) {
    released();
    state_ = State::kDone;
    return proceed();
  }
  running_ = false;
  if (state_ != State::kRunning) inference_.clear();  // closed, or answered in the meantime
  released();
  if (state_ != State::kRunning) return;
  state_ = State::kAnswering;
  proceed();
}

void Session::answer_exception(const std::exception_ptr& problem) {
  Failure failure = describe_failure(problem);
  failure.message = inference_.explain(std::move(failure.message));
  inference_.fail(failure.code);
  if (failure.status >= 500) {
    log_warn("request failed with {}: {}", failure.status, printable(failure.message));
  }
  answer_error(failure.status, failure.message, response_);
  if (failure.code == ErrorCode::kQueueFull) response_.fields = "Retry-After: 1\r\n";
  if (body_left_) keep_alive_ = false;
  begin_answer();
}

void Session::refuse(int status, std::string_view message) {
  answer_error(status, message, response_);
  keep_alive_ = false;
  begin_answer();
}

void Session::begin_answer() {
  if (body_left_ || worker_.service().draining.load(std::memory_order_relaxed)) keep_alive_ = false;
  // What went wrong can be looked up.
  if (request_id_.given() || response_.status >= 400) response_.request_id = request_id_.text();
  out_.clear();
  const std::string_view head = response_.finish(http11_, !keep_alive_, head_only_, worker_.date());
  out_.emplace_back(head.data(), head.size());
  out_bytes_ = head.size();
  if (!head_only_) {
    for (const Response::Segment& segment : response_.segments) {
      out_.emplace_back(segment.data, segment.bytes);
      out_bytes_ += segment.bytes;
    }
  }
  out_at_ = sent_ = 0;
  state_ = State::kWriting;
  phase_start_ = Clock::now();
  extend_deadline(worker_.service().config.write_timeout, out_bytes_);
  const bool found = routed_ && route_.result == RouteMatch::Result::kFound;
  worker_.counters().response(found ? static_cast<size_t>(route_.action) : ConnectionCounters::kNoRoute,
                              response_.status);
}

Session::Next Session::write() {
  while (sent_ < out_bytes_) {
    error_code ec;
    const size_t sent = transport_.write_some({out_.data() + out_at_, out_.data() + out_.size()}, ec);
    if (ec == asio::error::would_block || ec == asio::error::try_again) {
      ++pending_;
      transport_.socket().async_wait(transport_.wait_type(), [this](error_code e) { on_writable(e); });
      return Next::kWait;
    }
    if (ec) {
      close();
      return Next::kWait;
    }
    sent_ += sent;
    ConnectionCounters::add(worker_.counters().sent, sent);
    for (size_t left = sent; left > 0;) {
      asio::const_buffer& buffer = out_[out_at_];
      const size_t step = std::min(left, buffer.size());
      buffer += step;
      left -= step;
      if (buffer.size() == 0) ++out_at_;
    }
  }
  finish_request();
  return state_ == State::kHeader ? Next::kContinue : Next::kWait;
}

void Session::on_writable(error_code ec) noexcept {
  released();
  if (state_ != State::kWriting) return;
  if (ec) return close();
  proceed();
}

void Session::finish_request() {
  if (worker_.service().config.access_log) log_access();
  if (traced_ && !running_) record_trace();
  count_body(0);
  traced_ = compressed_ = routed_ = false;
  trace_parent_.reset();
  request_id_.begin({});
  if (!running_) inference_.clear();
  admin_.reset();
  parser_.reset();
  saw_bytes_ = false;
  head_only_ = false;
  http11_ = true;
  if (!keep_alive_) return linger();
  state_ = State::kHeader;
  phase_start_ = Clock::now();
  deadline_ = phase_start_ + worker_.service().config.idle_timeout;
}

void Session::read(char* at, size_t room) {
  ++pending_;
  reading_ = true;
  if (!transport_.encrypted()) {
    transport_.socket().async_read_some(asio::buffer(at, room),
                                        [this](error_code ec, size_t bytes) { on_read(ec, bytes); });
    return;
  }
  error_code ec;
  size_t bytes = 0;
  if (read_encrypted(at, room, ec, bytes)) {
    asio::post(worker_.context(), [this, ec, bytes] { on_read(ec, bytes); });
  }
}

// False: on_read() is called once there is something.
bool Session::read_encrypted(char* at, size_t room, error_code& ec, size_t& bytes) {
  bytes = transport_.read_some(at, room, ec);
  if (ec != asio::error::would_block) return true;
  transport_.socket().async_wait(transport_.wait_type(), [this, at, room](error_code e) {
    size_t read = 0;
    if (e || state_ == State::kClosed || read_encrypted(at, room, e, read)) on_read(e, read);
  });
  return false;
}

void Session::on_read(error_code ec, size_t bytes) noexcept {
  reading_ = false;
  const bool ahead = std::exchange(ahead_, false);
  released();
  ConnectionCounters::add(worker_.counters().received, bytes);
  if (ahead && state_ != State::kLingering && state_ != State::kClosed) {
    end_ += bytes;
    if (state_ == State::kRunning) {
      if (ec) return client_left(ec != asio::error::eof);
      return watch_client();
    }
    if (state_ != State::kHeader && state_ != State::kFixedBody && state_ != State::kChunkedBody) return;
    return proceed();  // of an error the next read tells again
  }
  switch (state_) {
    case State::kHeader:
    case State::kChunkedBody:
      end_ += bytes;
      break;
    case State::kFixedBody:
      body_.commit(bytes);
      break;
    case State::kLingering:
      sent_ += bytes;
      if (ec || sent_ > kLingerBytes) return close();
      return read(in_.get(), in_capacity_);
    default:
      return;  // answered in the meantime: what came is of no interest
  }
  if (ec) return close();
  proceed();
}

void Session::extend_deadline(std::chrono::microseconds timeout, size_t bytes) noexcept {
  const int64_t rate = std::max<int64_t>(worker_.service().config.min_rate, 1);
  deadline_ = phase_start_ + timeout + std::chrono::seconds(static_cast<int64_t>(bytes) / rate);
}

void Session::check_deadline(Clock::time_point now) {
  if (state_ == State::kWaiting || state_ == State::kClosed) return;
  if (now < deadline_) {
    if (state_ == State::kHeader && !saw_bytes_ && largest_ > kKeepBytes) trim();
    return;
  }
  switch (state_) {
    case State::kHeader:
      if (!saw_bytes_) return close();
      body_left_ = true;
      break;
    case State::kFixedBody:
    case State::kChunkedBody:
    case State::kRunning:
      break;
    default:
      return close();
  }
  try {
    if (state_ == State::kRunning) {
      run_out_of_time();
    } else {
      refuse(408, "the request did not arrive in time");
    }
  } catch (...) {
    return close();
  }
  proceed();
}

void Session::close_if_idle(Clock::time_point now) {
  if ((state_ != State::kHeader && state_ != State::kHandshake) || saw_bytes_ || now - phase_start_ < kFresh) return;
  // A request that is here but was not read yet is answered.
  if (state_ == State::kHandshake || !transport_.has_unread()) close();
}

void Session::trim() noexcept {
  body_.trim(kKeepBytes);
  plain_.trim(kKeepBytes);
  inference_.trim(kKeepBytes);
  if (response_.text().capacity() > kKeepBytes) response_.text().release();
  largest_ = 0;
  worker_.freed_much();
}

void Session::linger() noexcept {
  // Without unread bytes nothing can turn into a reset: close at once.
  if (!body_left_) return close();
  state_ = State::kLingering;
  transport_.shutdown_send();
  deadline_ = Clock::now() + kLingerTime;
  sent_ = 0;
  if (!reading_) read(in_.get(), in_capacity_);
}

void Session::close() noexcept {
  if (state_ == State::kClosed) return;
  if (running_) stop_waiting();
  count_body(0);
  state_ = State::kClosed;
  transport_.close();
  if (!running_) inference_.clear();
  if (pending_ == 0) worker_.retire(self_);
}

void Session::released() noexcept {
  if (--pending_ == 0 && state_ == State::kClosed) worker_.retire(self_);
}

}  // namespace sconce
