#include "server/http/connections/listening.h"

#include <boost/asio/ip/v6_only.hpp>

#include "sconce/check.h"

namespace sconce::server::http {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

tcp::endpoint listen_on(tcp::acceptor& acceptor, const Address& address) {
  boost::system::error_code ec;
  tcp::resolver resolver(acceptor.get_executor());
  const auto found = resolver.resolve(address.host, std::to_string(address.port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service, ec);
  SCONCE_CHECK(!ec && !found.empty(), kInvalidArgument, "cannot listen on ", address.host, ":", address.port, ": ",
               ec.message());
  tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor.open(endpoint.protocol(), ec);
  const bool any_v6 = endpoint.address() == asio::ip::address_v6::any();
  if (any_v6 && ec == asio::error::address_family_not_supported) {
    // A kernel without IPv6 has only IPv4 addresses.
    endpoint.address(asio::ip::address_v4::any());
    acceptor.open(endpoint.protocol(), ec);
  } else if (any_v6 && !ec) {
    acceptor.set_option(asio::ip::v6_only(false), ec);  // IPv4 too, independent of net.ipv6.bindv6only
  }
  if (!ec) acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(4096, ec);
  if (!ec) acceptor.native_non_blocking(true, ec);
  if (!ec) endpoint = acceptor.local_endpoint(ec);
  SCONCE_CHECK(!ec, kIo, "cannot listen on ", address.host, ":", address.port, ": ", ec.message());
  return endpoint;
}

std::string address_text(const tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(endpoint.port());
}

bool is_loopback(const tcp::endpoint& endpoint) noexcept {
  const asio::ip::address address = endpoint.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback();
  return address.is_loopback();
}

}  // namespace sconce::server::http
