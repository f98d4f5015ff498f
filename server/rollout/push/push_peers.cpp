#include "server/rollout/push/push_peers.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <boost/beast/core/string.hpp>
#include <charconv>
#include <optional>
#include <utility>

#include "sconce/check.h"
#include "server/support/failure.h"
#include "src/support/excerpt.h"

namespace sconce::server::rollout {
namespace {

namespace ip = boost::asio::ip;

std::optional<ip::address> address_from(const std::string& text) {
  boost::system::error_code ec;
  const ip::address address = ip::make_address(text, ec);
  return ec ? std::nullopt : std::optional(address);
}

bool same_text(std::string_view a, std::string_view b) {
  return boost::beast::iequals({a.data(), a.size()}, {b.data(), b.size()});
}

bool in_network(const ip::address& address, const ip::address& network, unsigned prefix) {
  if (address.is_v4() != network.is_v4()) return false;
  if (address.is_v4())
    return ip::network_v4(address.to_v4(), static_cast<uint16_t>(prefix)).canonical() ==
           ip::network_v4(network.to_v4(), static_cast<uint16_t>(prefix)).canonical();
  return ip::network_v6(address.to_v6(), static_cast<uint16_t>(prefix)).canonical() ==
         ip::network_v6(network.to_v6(), static_cast<uint16_t>(prefix)).canonical();
}

std::string token_of(const std::string& authorization) {
  constexpr std::string_view kScheme = "Bearer ";
  if (authorization.size() <= kScheme.size() ||
      !same_text(std::string_view(authorization).substr(0, kScheme.size()), kScheme))
    return {};
  return authorization.substr(kScheme.size());
}

std::string read_peers_token(const std::string& path) {
  std::string token;
  const std::string problem = problem_of([&] { token = http::read_token(path); });
  SCONCE_CHECK(problem.empty(), kIo, "setting weights_peers_token_file: ", problem);
  return token;
}

}  // namespace

PushPeers::PushPeers(const ServerConfig& config) : config_(config) {
  for (const std::string& text : config.weights_peers) rules_.push_back(rule(text));
  (void)read_peers_token(config.weights_peers_token_file);
}

PushPeers::Rule PushPeers::rule(const std::string& text) {
  const auto check = [&](bool good) {
    SCONCE_CHECK(good, kInvalidArgument,
                 "setting weights_peers: expected [http://|https://]HOST[:PORT], where HOST is a name, *.NAME, an "
                 "address, ADDRESS/BITS or *, got '",
                 text, "'");
  };
  Rule rule;
  std::string_view rest = text;
  if (const size_t scheme = rest.find("://"); scheme != std::string_view::npos) {
    rule.scheme = rest.substr(0, scheme);
    check(rule.scheme == "http" || rule.scheme == "https");
    rest.remove_prefix(scheme + 3);
  }
  // An IPv6 address without brackets has no port.
  const bool bare = !rest.starts_with('[') && rest.find(':') != rest.rfind(':');
  const size_t end = bare ? std::string_view::npos : rest.find(rest.starts_with('[') ? ']' : ':');
  if (rest.starts_with('[')) {
    check(end != std::string_view::npos);
    rule.host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
  } else {
    rule.host = rest.substr(0, end);
    rest.remove_prefix(std::min(end, rest.size()));
  }
  if (!rest.empty()) {
    check(rest.size() > 1 && rest.front() == ':');
    rule.port = rest.substr(1);
    check(std::all_of(rule.port.begin(), rule.port.end(), [](char c) { return c >= '0' && c <= '9'; }));
  }
  if (rule.host == "*") {
    rule.any = true;
  } else if (rule.host.starts_with("*.")) {
    rule.suffix = true;
    rule.host.erase(0, 1);
  } else if (const size_t slash = rule.host.find('/'); slash != std::string::npos) {
    const std::string bits = rule.host.substr(slash + 1);
    rule.host.resize(slash);
    const auto [last, ec] = std::from_chars(bits.data(), bits.data() + bits.size(), rule.prefix);
    const std::optional<ip::address> network = address_from(rule.host);
    check(ec == std::errc() && last == bits.data() + bits.size() && network && rule.prefix > 0 &&
          rule.prefix <= (network->is_v4() ? 32U : 128U));
  }
  check(!rule.host.empty() && rule.host.find_first_of("*/@ ") == (rule.any ? 0 : std::string::npos));
  return rule;
}

bool PushPeers::matches(const Rule& rule, const http::AdminServer& server) {
  if (!rule.scheme.empty() && rule.scheme != (server.tls ? "https" : "http")) return false;
  if (!rule.port.empty() && rule.port != server.port) return false;
  if (rule.any) return true;
  if (rule.suffix)
    return server.host.size() > rule.host.size() &&
           same_text(std::string_view(server.host).substr(server.host.size() - rule.host.size()), rule.host);
  const std::optional<ip::address> address = address_from(server.host);
  const std::optional<ip::address> network = address_from(rule.host);
  if (!address || !network) return same_text(server.host, rule.host);
  return rule.prefix == 0 ? *address == *network : in_network(*address, *network, rule.prefix);
}

bool PushPeers::allows(const http::AdminServer& server) const {
  return std::any_of(rules_.begin(), rules_.end(), [&](const Rule& rule) { return matches(rule, server); });
}

http::AdminClient PushPeers::client_of(const std::string& url, std::string token, std::chrono::seconds patience) const {
  http::AdminServer server = http::parse_admin_server(url);
  SCONCE_CHECK(allows(server), kForbidden, "weights_peers does not allow ", excerpt(url));
  http::ClientTls tls;
  if (server.tls) tls = http::checked_tls(config_.weights_peers_ca, config_.tls_certificate, config_.tls_key);
  return {std::move(server), std::move(token), patience, std::move(tls)};
}

std::string PushPeers::token(const std::string& authorization) const {
  return config_.weights_peers_token_file.empty() ? token_of(authorization)
                                                  : read_peers_token(config_.weights_peers_token_file);
}

http::Answer PushPeers::ask(const PushRecord& record, size_t member, std::string_view method, std::string_view action,
                            std::chrono::seconds patience) const {
  const std::string path = http::admin_path(record.model, std::to_string(record.version)) + "/weights/" +
                           std::string(action) + "?push=" + record.terms.id;
  http::Answer answer;
  const std::string problem = problem_of([&] {
    const http::AdminClient asked = client(record.terms.members[member], record.terms.authorization, patience);
    answer = method == "GET" ? asked.get(path) : asked.post(path);
  });
  if (!problem.empty()) answer.problem = problem;
  return answer;
}

std::string PushPeers::reason(const http::Answer& answer) const {
  std::string text = answer.reason();
  if (answer.status != 401 && answer.status != 403) return text;
  return text + (config_.weights_peers_token_file.empty()
                     ? "; set weights_peers_token_file to a file with a token that all servers take"
                     : "; it does not take the token of weights_peers_token_file");
}

http::AdminClient PushPeers::client(const std::string& url, const std::string& authorization,
                                    std::chrono::seconds patience) const {
  return client_of(url, token(authorization), patience);
}

http::AdminClient PushPeers::relay_client(const std::string& url, const std::string& authorization,
                                          std::chrono::seconds patience) const {
  return client_of(url, token_of(authorization), patience);
}

}  // namespace sconce::server::rollout
