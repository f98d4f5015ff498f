#include "server/http/connections/accepted.h"

#include <fmt/format.h>

namespace sconce::server::http {

std::string Accepted::peer() const {
  namespace ip = boost::asio::ip;
  ip::address address = peer_.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped()) address = ip::make_address_v4(ip::v4_mapped, address.to_v6());
  const std::string text = address.to_string();
  return address.is_v6() ? fmt::format("[{}]:{}", text, peer_.port()) : fmt::format("{}:{}", text, peer_.port());
}

}  // namespace sconce::server::http
