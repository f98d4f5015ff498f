// ClientClock: when bytes last moved on a connection, and the deadline for the next bytes or for the end of a step.
// until() sets the deadline for any other wait. The reader and the writer of the connection take the time from it. Used
// only on the connection's thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "server/support/pace.h"

namespace sconce::server::http {

// Returns the time. Tests replace it with a clock that stands still.
using NowFunction = std::chrono::steady_clock::time_point() noexcept;

class ClientClock {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  explicit ClientClock(NowFunction& now = Clock::now) noexcept : now_(&now) {}

  Time now() const noexcept { return now_(); }
  // A phase is reading a request, writing a response, or waiting for the next request.
  void begin_phase(Time now) noexcept { phase_start_ = now; }
  void until(Time deadline) noexcept { deadline_ = deadline; }
  // The client is alive, or moved bytes that do not extend its deadline.
  void moved(Time now) noexcept { moved_ = now; }

  // From now on the client must keep to `pace`.
  void begin_pace(Pace pace) noexcept { begin_pace(pace, now()); }
  void begin_pace(Pace pace, Time now) noexcept {
    pace_ = pace;
    moved_ = now;
    deadline_ = pace_.first(moved_);
  }
  // `bytes` bytes moved.
  void keep_pace(size_t bytes) noexcept {
    if (bytes == 0) return;
    moved_ = now();
    deadline_ = pace_.next(deadline_, moved_, bytes);
  }

  Time deadline() const noexcept { return deadline_; }
  Time phase_start() const noexcept { return phase_start_; }
  // When the client last acted.
  Time quiet_since() const noexcept { return std::max(moved_, phase_start_); }

 private:
  NowFunction* now_;
  Time phase_start_{}, deadline_{};
  Time moved_{};  // when bytes last moved, or moved() was called
  Pace pace_;
};

}  // namespace sconce::server::http
