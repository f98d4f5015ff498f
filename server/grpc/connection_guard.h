// ConnectionGuard: gRPC's connections, and which of them are shut down. A connection must bring messages for what it
// takes, and where there is no room for another one, the one that has brought none for longest gives way.
//
// It looks at each connection a few times each second: at the bytes that the kernel counts, and, where some have come,
// at gRPC's counters. No call knows of it. What a connection has used up of its allowances, the next one of its address
// begins with. Used on one thread.
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

namespace sconce::server {

class ConnectionGuard {
 public:
  using Clock = std::chrono::steady_clock;

  ConnectionGuard(const ConnectionRecord::Limits& limits, uint64_t calls, CallCounters& counters, LogLimit& lines)
      : limits_(limits), most_calls_(calls), counters_(counters), lines_(lines), debts_(limits) {}

  size_t size() const noexcept { return connections_.size(); }
  // Keeps an eye on an accepted connection, before gRPC has it. False: there is no memory.
  bool add(int descriptor) noexcept;
  // Looks at the connections, and shuts down those that may not stay. Returns how many gRPC has closed since.
  size_t look(GrpcServer& server, Clock::time_point now) noexcept;
  // Forgets the connections that gRPC has closed. Returns how many.
  size_t forget_closed() noexcept;
  // Shuts down the connection without a message for longest, unless it has a call that works. False: all have one.
  bool make_room(GrpcServer& server, Clock::time_point now) noexcept;
  // Whether bytes came between the last two looks.
  bool is_busy() const noexcept { return busy_; }

 private:
  // Gone when its descriptor is, or is another socket.
  struct Connection {
    int descriptor;
    uint64_t socket;            // its inode
    std::string peer, address;  // address: of all connections of its client
    int64_t number = 0;         // gRPC's; 0: it has none yet
    ConnectionRecord record;
    Clock::time_point asked{};  // gRPC's counters
    uint64_t received = 0;      // bytes, as of the last look
    Clock::time_point moved{};  // when that changed
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
  const uint64_t most_calls_;  // of a connection
  CallCounters& counters_;
  LogLimit& lines_;
  PeerDebts debts_;
  std::vector<Connection> connections_;
  int64_t last_number_ = 0;
  UsesByPeer uses_;
  bool knows_uses_ = false;  // uses_ is of this look
  bool busy_ = false;
};

}  // namespace sconce::server
