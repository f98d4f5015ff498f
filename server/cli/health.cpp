// `sconce health`: asks a server whether it is ready, for health checks of containers without curl.
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <iostream>
#include <memory>

#include "sconce/check.h"
#include "server/cli/command.h"
#include "server/http/client/admin_client.h"
#include "server/support/config.h"
#include "server/support/files/descriptor.h"

namespace sconce::server::cli {

namespace {

struct HealthOptions {
  std::string url, config;
  int patience_s = 3;
  bool live = false;
};

// A host with only IPv6 has no 127.0.0.1, and one without IPv6 no ::1.
bool has_ipv6_loopback() noexcept {
  const Descriptor probe(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  return probe.get() >= 0 && ::bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// The URL of a server with the same settings: a listener without TLS, so that no certificate must match this host's
// name.
std::string own_url(const HealthOptions& options) {
  ServerConfig config;
  if (!options.config.empty()) config.read_file(options.config);
  config.read_environment([](const char* name) { return std::getenv(name); });
  for (const auto& [address, tls] :
       {std::pair(config.http, config.http_tls), std::pair(config.metrics, config.metrics_tls),
        std::pair(config.admin, config.admin_tls)}) {
    if (!address.enabled() || address.port == 0 || tls != TlsMode::kOff) continue;
    const bool any = address.host == "0.0.0.0" || address.host == "::";
    const std::string host = !any ? address.host : address.host == "::" && has_ipv6_loopback() ? "::1" : "127.0.0.1";
    const bool six = host.find(':') != std::string::npos;
    return "http://" + (six ? "[" + host + "]" : host) + ":" + std::to_string(address.port);
  }
  SCONCE_FAIL(kInvalidArgument, "no listener of these settings speaks plain HTTP: name a URL");
}

int health(const HealthOptions& options) {
  const http::AdminServer server = http::parse_admin_server(options.url.empty() ? own_url(options) : options.url);
  const http::AdminClient client(server, {}, std::chrono::seconds(options.patience_s), http::checked_tls({}, {}, {}));
  const http::Answer answer = client.get(options.live ? "/v2/health/live" : "/v2/health/ready");
  if (answer.ok()) return 0;
  std::cerr << "sconce: " << server.host << ":" << server.port << ": " << answer.reason() << "\n";
  return 1;
}

}  // namespace

Action add_health(CommandLine& app) {
  auto options = std::make_shared<HealthOptions>();
  app.option("URL", options->url, "http://host:8000; without, the server that the settings of this environment make");
  app.option("--config", options->config, "The file of settings that the server reads").placeholder("FILE");
  app.flag("--live", options->live, "Ask whether it lives, not whether it is ready");
  app.option("--patience", options->patience_s, "Longest wait, in seconds").positive();
  app.footer("Exit status: 0 ready, 1 not ready or not reachable.");
  return [options] { return health(*options); };
}

}  // namespace sconce::server::cli
