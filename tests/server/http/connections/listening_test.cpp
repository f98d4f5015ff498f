#include "server/http/connections/listening.h"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>

namespace sconce::server::http {

TEST_CASE("listening: [::] is any address, IPv4's too") {
  boost::asio::io_context context;
  boost::asio::ip::tcp::acceptor acceptor(context);
  const boost::asio::ip::tcp::endpoint here = listen_on(acceptor, {.host = "::", .port = 0});
  CHECK_FALSE(is_loopback(here));
  boost::asio::ip::tcp::socket client(context);
  boost::system::error_code ec;
  client.connect({boost::asio::ip::make_address("127.0.0.1"), here.port()}, ec);
  CHECK_FALSE(ec);
}

}  // namespace sconce::server::http
