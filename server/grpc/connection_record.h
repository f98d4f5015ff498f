// ConnectionRecord: the messages that a gRPC connection has sent, compared with the resources that it uses. It only
// counts; connection_guard.h polls the connections.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "server/grpc/boundary.h"
#include "server/support/pace.h"
#include "server/telemetry/metrics.h"

namespace sconce::server::rpc {

// The state of a connection at one poll.
struct ConnectionLook {
  uint64_t received = 0;  // bytes
  GrpcTraffic traffic;
};

// The counters of a connection, and the decision whether it may stay.
class ConnectionRecord {
 public:
  using Clock = std::chrono::steady_clock;
  using Why = telemetry::CallCounters::Closed;  // kNone: it may stay

  struct Limits {
    int64_t empty_streams = 0;  // maximum per kWindow
    uint64_t message = 0;       // maximum bytes of a call: its message and metadata
    Pace pace;                  // minimum rate of a message
  };
  static constexpr std::chrono::seconds kWindow{10};
  static constexpr int kSuspicions =
      3;  // so that a call that ends between reading gRPC's and the server's counters is no stall
  static constexpr uint64_t kFreeBytes = 1024 * 1024;  // in addition to messages: settings, pings, windows
  static constexpr uint64_t kFreeRate = 1024;          // additional bytes per second

  // The used part of the allowances.
  struct Debt {
    double empty = 0;  // streams in excess of useful ones
    double bytes = 0;  // since the last message
    bool any() const noexcept { return empty > 0 || bytes > 0; }
  };

  // debt: carried over from earlier connections.
  explicit ConnectionRecord(Clock::time_point accepted) noexcept : ConnectionRecord(accepted, Debt()) {}
  ConnectionRecord(Clock::time_point accepted, const Debt& debt) noexcept
      : looked_(accepted), useful_(accepted), stalls_(Clock::time_point::max()), debt_(debt) {}

  // calls: returns the number of the connection's calls in the server, whose message has arrived, or which wait for a
  // message of a stream. It is called only if a message may have stalled.
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
  // Time of its last message; before the first one, of accepting it.
  Clock::time_point useful() const noexcept { return useful_; }
  // When to poll again if nothing arrives.
  Clock::time_point stalls() const noexcept { return stalls_; }
  uint64_t received() const noexcept { return last_.received; }
  const Debt& debt() const noexcept { return debt_; }  // at the last poll
  // Calls in progress, by gRPC's counters.
  uint64_t open() const noexcept {
    const GrpcTraffic& of = last_.traffic;
    return of.streams - std::min(of.streams, of.succeeded + of.failed);
  }

 private:
  Why count(const ConnectionLook& now, Clock::time_point time, const Limits& limits) noexcept;

  ConnectionLook last_;
  Clock::time_point looked_, useful_;
  Clock::time_point stalls_;  // when a call without its message must have sent more bytes; max: no such call
  int suspicions_ = 0;        // consecutive signs of a stall
  Debt debt_;
};

}  // namespace sconce::server::rpc
