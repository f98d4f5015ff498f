// HttpConnection: limits of its time, of the number of connections, and of its memory.
#include <algorithm>

#include "server/http/connections/http_connection.h"
#include "server/support/failure.h"

namespace sconce::server::http {
namespace {

// Memory that an idle connection keeps when memory for requests is short.
constexpr size_t kMinBytes = 16 * 1024;
constexpr std::chrono::milliseconds kQuiet{50};
// If a client moves no byte for this long within a request, its connection may be closed to make room.
constexpr std::chrono::seconds kStalled{1};
// Time that a connection has for its first bytes, and between requests, during a shutdown or when there is no room.
constexpr std::chrono::milliseconds kFresh{300};

}  // namespace

IoThread::Idle HttpConnection::idle(Clock::time_point now) const noexcept {
  const Clock::time_point since = clock_.quiet_since();
  switch (state_) {
    case State::kReading:
      if (reader_.idle()) return {now - since >= kFresh, true, since};
      [[fallthrough]];
    case State::kHandshake:
    case State::kWriting:
    case State::kLingering:
      return {now - since >= kStalled, false, since};
    default:
      // An event stream may be closed for the next connection; otherwise the client waits for the server.
      if (stream_->waiting().events) return {now - clock_.phase_start() >= kStalled, false, clock_.phase_start()};
      return {};
  }
}

bool HttpConnection::make_room() noexcept {
  if (between_requests() && transport_.has_unread()) {
    clock_.moved(clock_.now());
    return false;
  }
  close();
  slot_.release();  // released now, because otherwise the waiting listener would close another connection
  return true;
}

void HttpConnection::check_deadline(Clock::time_point now) {
  if (feeds()) {
    state_ = State::kReturned;
    return proceed();
  }
  // The loop reports each readiness of a socket once. If a call was cut short or deferred nevertheless, the rest is
  // done here.
  const bool reads = state_ == State::kReading && (unsure_ || !reader_.idle());
  if (reads || state_ == State::kHandshake || (state_ == State::kWriting && !deferred_)) {
    readable_ |= reads;
    unsure_ = false;
    proceed();
  }
  if (state_ == State::kClosed || (state_ == State::kWaiting && !waits_for_model())) return;
  if (now < clock_.deadline()) {
    trim_idle();
    return;
  }
  switch (state_) {
    case State::kReading:
      if (reader_.idle()) return close();
      return refuse_late(408, "the request did not arrive in time");
    case State::kWaiting: {
      const bool told = succeeds([this] {
        stream_->run_out_of_time();
        begin_answer();
      });
      return told ? proceed() : close();
    }
    default:
      return close();
  }
}

// Answers a request that arrived only in part.
void HttpConnection::refuse_late(int status, std::string_view message) noexcept {
  const bool told = succeeds([&] {
    stream_->refuse(status, message);
    begin_answer();
  });
  told ? proceed() : close();
}

void HttpConnection::end_client(bool tell) noexcept {
  switch (state_) {
    case State::kReading:
      if (!tell || reader_.idle()) return close();
      return refuse_late(503, "the server is shutting down, and the request did not arrive in time");
    case State::kHandshake:
    case State::kWriting:
    case State::kLingering:
      return close();
    default:
      return;  // the client waits for the server
  }
}

// A client that has not read the last event will not read this one either.
void HttpConnection::end_feed() noexcept {
  const bool told = feeds() && succeeds([this] { follow(stream_->end_feed()); });
  told ? proceed() : close();
}

void HttpConnection::close_if_idle(Clock::time_point now) {
  if (stream_->waiting().events) return end_feed();
  if ((!between_requests() && state_ != State::kHandshake) || now - clock_.phase_start() < kFresh) return;
  // A request that has arrived but was not read yet is answered.
  if (state_ == State::kHandshake || !transport_.has_unread()) close();
}

// Frees memory after a request, when it is unused.
void HttpConnection::trim(size_t keep) noexcept {
  reader_.trim(keep);
  stream_->trim(keep);
  freed_ = true;
}

// Called at each tick, for connections with little activity.
void HttpConnection::trim_idle() noexcept {
  const bool idle = between_requests();
  if (idle) reader_.rest();
  if (idle && io_thread_.shared().request_memory.is_tight() &&
      std::max(reader_.capacity(), stream_->capacity()) > kMinBytes) {
    trim(kMinBytes);
  }
  // Not between two large requests.
  if (freed_ && (idle || (state_ == State::kReading && reader_.in_body())) &&
      clock_.now() - clock_.quiet_since() > kQuiet) {
    freed_ = false;
    io_thread_.freed_much();
  }
}

}  // namespace sconce::server::http
