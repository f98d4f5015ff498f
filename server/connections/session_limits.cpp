// What a session may take: the time of its client and of its model, a place among the connections, memory.
#include <algorithm>

#include "server/base/failure.h"
#include "server/connections/session.h"

namespace sconce::server {
namespace {

// Memory that an idle connection keeps where that of requests is scarce.
constexpr size_t kLeastBytes = 16 * 1024;
constexpr std::chrono::milliseconds kQuiet{50};
// A client from which nothing comes, or to which nothing goes, for so long within a request may have to make room.
constexpr std::chrono::seconds kStalled{1};
// The time that a connection has for its first bytes, and between requests, in a shutdown and where there is no room.
constexpr std::chrono::milliseconds kFresh{300};

}  // namespace

IoThread::Idle Session::idle(Clock::time_point now) const noexcept {
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
      return {};  // it waits for the server
  }
}

bool Session::make_room() noexcept {
  if (between_requests() && transport_.has_unread()) {
    clock_.moved(Clock::now());
    return false;
  }
  close();
  slot_.release();  // now, or whoever waits for room would have another one closed
  return true;
}

void Session::check_deadline(Clock::time_point now) {
  if (state_ == State::kClosed || (state_ == State::kWaiting && !exchange_.running())) return;
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
        exchange_.run_out_of_time();
        begin_answer();
      });
      return told ? proceed() : close();
    }
    default:
      return close();
  }
}

// A request of which something is missing.
void Session::refuse_late(int status, std::string_view message) noexcept {
  const bool told = succeeds([&] {
    exchange_.refuse(status, message);
    begin_answer();
  });
  told ? proceed() : close();
}

void Session::end_client(bool tell) noexcept {
  switch (state_) {
    case State::kReading:
      if (!tell || reader_.idle()) return close();
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
  if ((!between_requests() && state_ != State::kHandshake) || now - clock_.phase_start() < kFresh) return;
  // A request that is here but was not read yet is answered.
  if (state_ == State::kHandshake || !transport_.has_unread()) close();
}

// Of a request that is over; nothing uses its memory.
void Session::trim(size_t keep) noexcept {
  reader_.trim(keep);
  exchange_.trim(keep);
  freed_ = true;
}

// At each tick, for a connection that does little.
void Session::trim_idle() noexcept {
  const bool idle = between_requests();
  if (idle && io_thread_.service().request_memory.is_tight() &&
      std::max(reader_.capacity(), exchange_.capacity()) > kLeastBytes) {
    trim(kLeastBytes);
  }
  // Not while it goes from one large request to the next.
  if (freed_ && (idle || (state_ == State::kReading && reader_.in_body())) &&
      Clock::now() - clock_.quiet_since() > kQuiet) {
    freed_ = false;
    io_thread_.freed_much();
  }
}

}  // namespace sconce::server
