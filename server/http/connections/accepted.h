// An accepted socket without an HttpConnection. If it gets none, the destructor closes it and it is no longer counted.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <string>
#include <utility>

#include "server/http/open_connections.h"
#include "server/support/files/descriptor.h"

namespace sconce::server::http {

class Accepted {
 public:
  using Endpoint = boost::asio::ip::tcp::endpoint;

  Accepted(Descriptor socket, const Endpoint& peer, Listeners listener, OpenConnections::Slot slot) noexcept
      : socket_(std::move(socket)), peer_(peer), listener_(listener), slot_(std::move(slot)) {}

  // "192.0.2.7:50000"; IPv6 addresses have brackets.
  std::string peer() const;
  Listeners listener() const noexcept { return listener_; }
  Descriptor take_socket() noexcept { return std::move(socket_); }
  OpenConnections::Slot take_slot() noexcept { return std::move(slot_); }

 private:
  Descriptor socket_;
  Endpoint peer_;
  Listeners listener_;
  OpenConnections::Slot slot_;
};

}  // namespace sconce::server::http
