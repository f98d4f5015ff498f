#include "server/connections/session.h"

#include <fmt/format.h>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/http/error.hpp>
#include <cstring>

#include "sconce/check.h"
#include "server/answers/routes.h"
#include "server/base/failure.h"
#include "server/base/log.h"

namespace sconce {
namespace {

namespace asio = boost::asio;

// Requests of one connection that are answered in a row before others have their turn.
constexpr int kInARow = 16;
// Memory that an idle connection keeps where that of requests is scarce.
constexpr size_t kLeastBytes = 16 * 1024;
constexpr std::chrono::milliseconds kQuiet{50};
constexpr std::chrono::seconds kLingerTime{2};
// A client from which nothing comes, or to which nothing goes, for so long within a request may have to make room.
constexpr std::chrono::seconds kStalled{1};
// The time that a connection has for its first bytes, and between requests, in a shutdown and where there is no room.
constexpr std::chrono::milliseconds kFresh{300};

}  // namespace

Session::Session(Worker& worker, asio::ip::tcp::socket socket, Listeners listener, OpenConnections::Slot slot,
                 std::string peer)
    : worker_(worker),
      transport_(std::move(socket), worker.tls_of(listener)),
      listener_(listener),
      slot_(std::move(slot)),
      peer_(std::move(peer)),
      in_capacity_(static_cast<size_t>(worker.service().config.max_header_bytes)),
      body_(&worker.service().request_memory),
      plain_(&worker.service().request_memory),
      inference_(worker.index(), &Session::notify, this, &worker.service().request_memory) {
  in_ = std::make_unique_for_overwrite<char[]>(in_capacity_);
}

Session::~Session() {
  if (largest_ > kKeepBytes || freed_) worker_.freed_much();
}

void Session::start(Worker::Sessions::iterator self) {
  self_ = self;
  error_code ec;
  transport_.socket().set_option(asio::ip::tcp::no_delay(true), ec);
  transport_.socket().non_blocking(true, ec);
  const ServerConfig& config = worker_.service().config;
  const Clock::time_point now = Clock::now();
  clock_.moved(now);
  clock_.begin_phase(now);
  clock_.until(now + (transport_.encrypted() ? config.tls_handshake_timeout : config.header_timeout));
  if (transport_.encrypted()) state_ = State::kHandshake;
  proceed();
}

// The loop, and what stops it: the one place where a request's exceptions end.
void Session::proceed() noexcept {
  const LogRequest log_request(request_id_, peer_);
  for (;;) {
    std::exception_ptr problem;
    try {
      return steps();
    } catch (...) {
      problem = std::current_exception();
    }
    // Of an answer that has begun no other can follow.
    if (state_ == State::kWriting) return close();
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
          begin_operation([this] {
            asio::post(worker_.context(), [this] {
              released();
              if (state_ == State::kHeader) proceed();
            });
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
      case State::kDecoded:
        end_away();
        run_decoded();
        break;
      case State::kAnswering:
        inference_.finish_run();
        if (answers_long()) {
          go_away(&Session::encode_answer, State::kEncoded);
        } else {
          encode_answer();
          finish_answer();
        }
        break;
      case State::kEncoded:
        end_away();
        finish_answer();
        break;
      case State::kDone:
        answer_waited();
        break;
      case State::kWriting:
        next = write();
        if (next == Next::kContinue) ++answered;
        break;
      case State::kAway:
      case State::kRunning:
      case State::kWaiting:
      case State::kLingering:
      case State::kClosed:
        return;
    }
    if (next == Next::kWait) return;
  }
}

Session::Next Session::handshake() {
  error_code ec;
  if (transport_.handshake(ec)) {
    state_ = State::kHeader;
    const Clock::time_point now = Clock::now();
    clock_.begin_phase(now);
    clock_.until(now + worker_.service().config.header_timeout);
    return Next::kContinue;
  }
  if (ec != asio::error::would_block) {
    log_debug("TLS handshake failed: {}", printable(transport_.handshake_problem()));
    close();
    return Next::kWait;
  }
  begin_operation([this] {
    transport_.socket().async_wait(transport_.wait_type(), [this](error_code e) {
      released();
      if (state_ != State::kHandshake) return;
      if (e) return close();
      proceed();
    });
  });
  return Next::kWait;
}

void Session::route_request() {
  response_.reset();
  // What a handler has changed must not be answered as failed because the answer finds no memory.
  writer_.reserve();
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
  std::visit([this](const auto& handler) { answer_by(handler); }, route_of(route_).handler);
}

void Session::answer_by(const Here& handler) {
  handler.answer({worker_.service(), worker_.catalog(), route_, body_text(), parser_->head().accepts_html}, response_);
  begin_answer();
}

void Session::answer_by(const OnAdminThread& handler) {
  admin_->body = body_text();
  start_task(handler);
}

std::string_view Session::body_text() const noexcept {
  return {reinterpret_cast<const char*>(body().begin()), body().size()};
}

bool Session::forbidden() const noexcept {
  const Route* const route = found_route(route_);
  return route != nullptr && is_forbidden(*route, listener_, worker_.service().config.http_admin);
}

void Session::notify(void* session) noexcept {
  Session& self = *static_cast<Session*>(session);
  self.worker_.notify(self);
}

void Session::on_notice() noexcept {
  if (away_) return come_back();
  if (state_ == State::kWaiting) {
    released();
    state_ = State::kDone;
    return proceed();
  }
  running_ = false;
  worker_.lane_requests(-1);
  if (state_ != State::kRunning) inference_.clear();  // closed, or answered in the meantime
  released();
  if (state_ != State::kRunning) return;
  state_ = State::kAnswering;
  proceed();
}

Pace Session::pace(std::chrono::microseconds grace) const noexcept {
  return {grace, static_cast<uint64_t>(std::max<int64_t>(worker_.service().config.min_rate, 1))};
}

Worker::Idle Session::idle(Clock::time_point now) const noexcept {
  const Clock::time_point since = clock_.quiet_since();
  switch (state_) {
    case State::kHeader:
      if (!saw_bytes_) return {now - since >= kFresh, true, since};
      [[fallthrough]];
    case State::kHandshake:
    case State::kFixedBody:
    case State::kChunkedBody:
    case State::kWriting:
    case State::kLingering:
      return {now - since >= kStalled, false, since};
    default:
      return {};  // it waits for the server
  }
}

bool Session::make_room() noexcept {
  if (state_ == State::kHeader && !saw_bytes_ && transport_.has_unread()) {
    clock_.moved(Clock::now());
    return false;
  }
  close();
  slot_.release();  // now, or whoever waits for room would have another one closed
  return true;
}

void Session::check_deadline(Clock::time_point now) {
  if (state_ == State::kWaiting || state_ == State::kAway || state_ == State::kClosed) return;
  if (now < clock_.deadline()) {
    trim_idle();
    return;
  }
  switch (state_) {
    case State::kHeader:
      if (!saw_bytes_) return close();
      [[fallthrough]];
    case State::kFixedBody:
    case State::kChunkedBody:
      return refuse_late(408, "the request did not arrive in time");
    case State::kRunning:
      if (!succeeds([this] { run_out_of_time(); })) return close();
      return proceed();
    default:
      return close();
  }
}

// A request of which something is missing.
void Session::refuse_late(int status, std::string_view message) noexcept {
  body_left_ = true;
  if (!succeeds([&] { refuse(status, message); })) return close();
  proceed();
}

void Session::end_client(bool tell) noexcept {
  switch (state_) {
    case State::kFixedBody:
    case State::kChunkedBody:
    case State::kHeader:
      if (!tell || (state_ == State::kHeader && !saw_bytes_)) return close();
      return refuse_late(503, "the server is shutting down, and the request did not arrive in time");
    case State::kHandshake:
    case State::kWriting:
    case State::kLingering:
      return close();
    default:
      return;  // it waits for the server
  }
}

void Session::close_if_idle(Clock::time_point now) {
  if ((state_ != State::kHeader && state_ != State::kHandshake) || saw_bytes_ || now - clock_.phase_start() < kFresh)
    return;
  // A request that is here but was not read yet is answered.
  if (state_ == State::kHandshake || !transport_.has_unread()) close();
}

// Of a request that is over; nothing uses its memory.
void Session::trim(size_t keep) noexcept {
  body_.trim(keep);
  plain_.trim(keep);
  inference_.trim(keep);
  if (response_.text().capacity() > keep) response_.text().release();
  largest_ = 0;
  freed_ = true;
}

// At each tick, for a connection that does little.
void Session::trim_idle() noexcept {
  const bool idle = state_ == State::kHeader && !saw_bytes_;
  if (idle && worker_.service().request_memory.is_tight() &&
      std::max({body_.capacity(), plain_.capacity(), inference_.capacity()}) > kLeastBytes) {
    trim(kLeastBytes);
  }
  // Not while it goes from one large request to the next.
  if (freed_ && (idle || state_ == State::kFixedBody || state_ == State::kChunkedBody) &&
      Clock::now() - clock_.quiet_since() > kQuiet) {
    freed_ = false;
    worker_.freed_much();
  }
}

void Session::linger() noexcept {
  // Without unread bytes nothing can turn into a reset: close at once.
  if (!body_left_) return close();
  state_ = State::kLingering;
  transport_.shutdown_send();
  clock_.until(Clock::now() + kLingerTime);
  thrown_away_ = 0;
  if (!reading_ && !succeeds([this] { read(in_.get(), in_capacity_); })) close();
}

void Session::close() noexcept {
  if (state_ == State::kClosed) return;
  if (running_) stop_waiting();
  count_body(0);
  state_ = State::kClosed;
  transport_.close();
  answer_room_.give_back();
  if (!running_ && !away_) inference_.clear();
  if (pending_ == 0) worker_.retire(self_);
}

void Session::released() noexcept {
  if (--pending_ == 0 && state_ == State::kClosed) worker_.retire(self_);
}

}  // namespace sconce
