// ClientClock: how long a connection waits for its client: when bytes last moved, and by when more of them, or the
// whole of a step, must have come. A wait for anything else sets its deadline by until(). Confined to the connection's
// thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "server/base/pace.h"

namespace sconce::server {

class ClientClock {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  // The connection turns to something else: it begins to read a request, to write an answer, to wait for the next one.
  void begin_phase(Time now) noexcept { phase_start_ = now; }
  void until(Time deadline) noexcept { deadline_ = deadline; }
  // Bytes moved that give the client no more time, or the client is known to be there.
  void moved(Time now) noexcept { moved_ = now; }

  // From now on the client must keep to `pace`.
  void begin_pace(Pace pace) noexcept {
    pace_ = pace;
    moved_ = Clock::now();
    deadline_ = pace_.first(moved_);
  }
  // So many bytes moved since.
  void keep_pace(size_t bytes) noexcept {
    if (bytes == 0) return;
    moved_ = Clock::now();
    deadline_ = pace_.next(deadline_, moved_, bytes);
  }

  Time deadline() const noexcept { return deadline_; }
  Time phase_start() const noexcept { return phase_start_; }
  // Since when nothing has happened that the client did.
  Time quiet_since() const noexcept { return std::max(moved_, phase_start_); }

 private:
  Time phase_start_{}, deadline_{};
  Time moved_{};  // when bytes came or went last, as far as it counts
  Pace pace_;
};

}  // namespace sconce::server
