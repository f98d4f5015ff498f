// An accepted connection that has no session yet. If it gets none, it is closed and no longer counted.
#pragma once

#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <string>
#include <utility>

#include "server/http/open_connections.h"

namespace sconce::server {

class Accepted {
 public:
  using Endpoint = boost::asio::ip::tcp::endpoint;

  Accepted(int descriptor, const Endpoint& peer, bool v6, Listeners listener, OpenConnections::Slot slot) noexcept
      : descriptor_(descriptor), peer_(peer), v6_(v6), listener_(listener), slot_(std::move(slot)) {}
  Accepted(Accepted&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)),
        peer_(other.peer_),
        v6_(other.v6_),
        listener_(other.listener_),
        slot_(std::move(other.slot_)) {}
  Accepted& operator=(Accepted&&) = delete;
  ~Accepted() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  int descriptor() const noexcept { return descriptor_; }
  // "192.0.2.7:50000"; IPv6 addresses have brackets.
  std::string peer() const;
  bool v6() const noexcept { return v6_; }
  Listeners listener() const noexcept { return listener_; }
  // From now on another object owns and closes the descriptor.
  void give_away() noexcept { descriptor_ = -1; }
  OpenConnections::Slot take_slot() noexcept { return std::move(slot_); }

 private:
  int descriptor_;
  Endpoint peer_;
  bool v6_;
  Listeners listener_;
  OpenConnections::Slot slot_;
};

}  // namespace sconce::server
