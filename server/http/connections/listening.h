// The listening socket, for HTTP and gRPC.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <string>

#include "server/support/config.h"

namespace sconce::server::http {

// Binds and listens without blocking; returns the endpoint, with the port that the system chose. kIo with address and
// reason; kInvalidArgument for a host that cannot be resolved.
boost::asio::ip::tcp::endpoint listen_on(boost::asio::ip::tcp::acceptor& acceptor, const Address& address);
std::string address_text(const boost::asio::ip::tcp::endpoint& endpoint);  // "127.0.0.1:8000"
bool is_loopback(const boost::asio::ip::tcp::endpoint& endpoint) noexcept;

}  // namespace sconce::server::http
