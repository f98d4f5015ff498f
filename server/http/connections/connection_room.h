// The number of connections for which the descriptor limit has room.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sconce::server::http {

struct ConnectionRoom {
  int64_t of_public = 0;  // connections of the public listener, and the same number of gRPC
  int64_t of_side = 0;    // of the metrics listener, and the same number of the admin listener
};

// wanted: the limits in the settings. Packages, pushes, downloads and log files need descriptors too, and so do the
// other listeners, independent of the public one.
constexpr ConnectionRoom connection_room(int64_t descriptors, ConnectionRoom wanted, bool grpc) noexcept {
  const int64_t files = std::clamp<int64_t>(descriptors / 4, 32, 1024);
  const int64_t side = std::clamp<int64_t>(descriptors / 16, 1, std::max<int64_t>(wanted.of_side, 1));
  const int64_t left = std::max<int64_t>(descriptors - files - 2 * side, grpc ? 2 : 1) / (grpc ? 2 : 1);
  return {std::min(wanted.of_public, left), std::min(wanted.of_side, side)};
}

}  // namespace sconce::server::http
