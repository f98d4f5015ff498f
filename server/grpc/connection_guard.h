// ConnectionGuard: watches gRPC's connections, and shuts some of them down. A connection must send messages in
// proportion to the resources that it uses. If there is no room for a new connection, the connection without a message
// for the longest time is shut down.
//
// It polls each connection a few times per second: the kernel's byte counter, and, if bytes have arrived, gRPC's
// counters. Calls are not involved. The used part of a connection's allowances is carried over to the next connection
// from its address. Used on one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/grpc/boundary.h"
#include "server/grpc/connection_record.h"
#include "server/grpc/peer_debts.h"
#include "server/support/log.h"
#include "server/telemetry/metrics.h"

namespace sconce::server::rpc {

class ConnectionGuard {
 public:
  using Clock = std::chrono::steady_clock;

  ConnectionGuard(const ConnectionRecord::Limits& limits, uint64_t calls, telemetry::CallCounters& counters,
                  LogLimit& lines)
      : limits_(limits), most_calls_(calls), counters_(counters), lines_(lines), debts_(limits) {}

  size_t size() const noexcept { return connections_.size(); }
  // Starts watching an accepted connection, before gRPC gets it. False: no memory.
  bool add(int descriptor) noexcept;
  // Polls the connections, and shuts down those that violate the limits. Returns how many gRPC has closed since the
  // last poll.
  size_t look(GrpcServer& server, Clock::time_point now) noexcept;
  // Removes connections that gRPC has closed. Returns their number.
  size_t forget_closed() noexcept;
  // Shuts down the connection without a message for the longest time, unless it has a working call. False: all
  // connections have one.
  bool make_room(GrpcServer& server, Clock::time_point now) noexcept;
  // Whether bytes arrived between the last two polls.
  bool is_busy() const noexcept { return busy_; }

 private:
  // Closed when its descriptor is closed, or is another socket.
  struct Connection {
    int descriptor;
    uint64_t socket;            // its inode
    std::string peer, address;  // address: shared by all connections of its client
    int64_t number = 0;         // gRPC's number; 0: none yet
    ConnectionRecord record;
    Clock::time_point asked{};  // when gRPC's counters were last read
    uint64_t received = 0;      // bytes at the last poll
    Clock::time_point moved{};  // when `received` changed
    bool shut = false;
    Clock::time_point shut_at{};
  };
  struct Uses {
    uint64_t calls = 0, working = 0;
  };
  using UsesByPeer = std::map<std::string, Uses, std::less<>>;

  static bool is_open(const Connection& connection) noexcept;
  size_t forget_closed(Clock::time_point now) noexcept;
  void find_numbers(GrpcServer& server);
  void look_at(Connection& connection, GrpcServer& server, Clock::time_point now);
  const UsesByPeer& uses(GrpcServer& server);
  Uses uses_of(const Connection& connection, GrpcServer& server);
  void shut_down(Connection& connection, ConnectionRecord::Why why, Clock::time_point now) noexcept;

  const ConnectionRecord::Limits limits_;
  const uint64_t most_calls_;  // per connection
  telemetry::CallCounters& counters_;
  LogLimit& lines_;
  PeerDebts debts_;
  std::vector<Connection> connections_;
  int64_t last_number_ = 0;
  UsesByPeer uses_;
  bool knows_uses_ = false;  // uses_ was read in this poll
  bool busy_ = false;
};

}  // namespace sconce::server::rpc
