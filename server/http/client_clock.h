// ClientClock: when bytes last moved on a connection, and by when more bytes, or the end of a step, must come. until()
// sets the deadline for any other wait. Used only on the connection's thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "server/support/pace.h"

namespace sconce::server {

class ClientClock {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  // The connection starts to read a request, to write an answer, or to wait for the next request.
  void begin_phase(Time now) noexcept { phase_start_ = now; }
  void until(Time deadline) noexcept { deadline_ = deadline; }
  // The client is there, or moved bytes that do not extend its time.
  void moved(Time now) noexcept { moved_ = now; }

  // From now on the client must keep to `pace`.
  void begin_pace(Pace pace) noexcept { begin_pace(pace, Clock::now()); }
  void begin_pace(Pace pace, Time now) noexcept {
    pace_ = pace;
    moved_ = now;
    deadline_ = pace_.first(moved_);
  }
  // So many bytes moved.
  void keep_pace(size_t bytes) noexcept {
    if (bytes == 0) return;
    moved_ = Clock::now();
    deadline_ = pace_.next(deadline_, moved_, bytes);
  }

  Time deadline() const noexcept { return deadline_; }
  Time phase_start() const noexcept { return phase_start_; }
  // The client's last action.
  Time quiet_since() const noexcept { return std::max(moved_, phase_start_); }

 private:
  Time phase_start_{}, deadline_{};
  Time moved_{};  // when bytes last moved, as far as that counts
  Pace pace_;
};

}  // namespace sconce::server
