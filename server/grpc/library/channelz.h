// gRPC's counters of each connection of this process's server, read from its channelz, which alone counts streams that
// ended before they sent a message.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "server/grpc/boundary.h"

namespace sconce::server::rpc {

// A client's address in the form of GrpcCaller, from gRPC's form: "ipv4:192.0.2.7:50000", "ipv6:%5B::1%5D:50000".
std::string peer_of(std::string_view address);

// The counters in channelz's document of a socket.
GrpcTraffic traffic_in(std::string_view document) noexcept;

class Channelz {
 public:
  // For the newest server of the process.
  Channelz();

  // Calls `found` for each connection with a number larger than `after`, in order. std::bad_alloc
  void connections(int64_t after, const std::function<void(int64_t number, std::string_view peer)>& found) const;
  // False: the connection is closed.
  bool traffic(int64_t number, GrpcTraffic& to) const noexcept;

 private:
  int64_t server_ = 0;
};

}  // namespace sconce::server::rpc
