// ConnectionRecord: what a connection of gRPC has brought for what it takes. Counts alone: connection_guard.h looks at
// the connections.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "server/grpc/boundary.h"
#include "server/support/pace.h"
#include "server/telemetry/metrics.h"

namespace sconce::server {

// What is known of a connection at a time.
struct ConnectionLook {
  uint64_t received = 0;  // bytes
  GrpcTraffic traffic;
};

// What a connection has brought, and whether it may stay.
class ConnectionRecord {
 public:
  using Clock = std::chrono::steady_clock;
  using Why = CallCounters::Closed;  // kNone: it may stay

  struct Limits {
    int64_t empty_streams = 0;  // in kWindow
    uint64_t message = 0;       // bytes of a call: its message and metadata
    Pace pace;                  // of a message
  };
  static constexpr std::chrono::seconds kWindow{10};
  static constexpr int kSuspicions =
      3;  // so that none is a call that ended between the counts of gRPC and of the server
  static constexpr uint64_t kFreeBytes = 1024 * 1024;  // beside messages: settings, pings, windows
  static constexpr uint64_t kFreeRate = 1024;          // and so many a second

  // What is used up of the allowances.
  struct Debt {
    double empty = 0;  // streams beyond those that were of use
    double bytes = 0;  // since the last message
    bool any() const noexcept { return empty > 0 || bytes > 0; }
  };

  // debt: what it begins with.
  explicit ConnectionRecord(Clock::time_point accepted) noexcept : ConnectionRecord(accepted, Debt()) {}
  ConnectionRecord(Clock::time_point accepted, const Debt& debt) noexcept
      : looked_(accepted), useful_(accepted), stalls_(Clock::time_point::max()), debt_(debt) {}

  // calls: how many calls of the connection the server has, that is, whose message has come, or which wait for one of a
  // stream. It is asked for only if a message may have stalled.
  template <class Calls>
  Why look(const ConnectionLook& now, Clock::time_point time, const Limits& limits, const Calls& calls) {
    const Why why = count(now, time, limits);
    if (why != Why::kNone || time < stalls_) return why;
    if (open() <= calls()) {
      stalls_ = limits.pace.first(time);
    } else if (++suspicions_ >= kSuspicions) {
      return Why::kStalled;
    }
    return Why::kNone;
  }
  // When it last brought a message; before it brings one, when it was accepted.
  Clock::time_point useful() const noexcept { return useful_; }
  // When to look again if nothing comes.
  Clock::time_point stalls() const noexcept { return stalls_; }
  uint64_t received() const noexcept { return last_.received; }
  const Debt& debt() const noexcept { return debt_; }  // as of the last look
  // Calls under way, as gRPC counts them.
  uint64_t open() const noexcept {
    const GrpcTraffic& of = last_.traffic;
    return of.streams - std::min(of.streams, of.succeeded + of.failed);
  }

 private:
  Why count(const ConnectionLook& now, Clock::time_point time, const Limits& limits) noexcept;

  ConnectionLook last_;
  Clock::time_point looked_, useful_;
  Clock::time_point stalls_;  // a call without its message must have brought more bytes by then; max: there is none
  int suspicions_ = 0;        // of a stall, in a row
  Debt debt_;
};

}  // namespace sconce::server
