#include "server/grpc/library/channelz.h"

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <charconv>
#include <memory>
#include <utility>

namespace sconce::server::rpc {
namespace {

struct Free {
  void operator()(char* text) const noexcept { gpr_free(text); }
};
using Text = std::unique_ptr<char, Free>;

// Calls `found` with the quoted value of each member of this name. gRPC writes numbers as strings, without blanks, and
// no value in these documents contains a quote.
template <class Found>
void each(std::string_view document, std::string_view name, const Found& found) {
  const std::string key = std::string("\"").append(name).append("\":\"");
  for (size_t at = document.find(key); at != std::string_view::npos; at = document.find(key, at)) {
    at += key.size();
    const size_t end = document.find('"', at);
    if (end == std::string_view::npos) return;
    found(document.substr(at, end - at));
  }
}

uint64_t number_in(std::string_view document, std::string_view key) noexcept {
  uint64_t number = 0;
  if (const size_t at = document.find(key); at != std::string_view::npos) {
    const char* const begin = document.data() + at + key.size();
    std::from_chars(begin, document.data() + document.size(), number);
  }
  return number;
}

}  // namespace

std::string peer_of(std::string_view address) {
  std::string peer(address.substr(address.find(':') + 1));
  for (const auto& [escaped, bracket] : {std::pair("%5B", "["), std::pair("%5D", "]")}) {
    if (const size_t at = peer.find(escaped); at != std::string::npos) peer.replace(at, 3, bracket);
  }
  return peer;
}

GrpcTraffic traffic_in(std::string_view document) noexcept {
  return {number_in(document, "\"streamsStarted\":\""), number_in(document, "\"streamsSucceeded\":\""),
          number_in(document, "\"streamsFailed\":\""), number_in(document, "\"messagesReceived\":\"")};
}

Channelz::Channelz() {
  for (;;) {
    const Text text(grpc_channelz_get_servers(server_ + 1));
    int64_t last = 0;
    if (text)
      each(text.get(), "serverId",
           [&](std::string_view id) { std::from_chars(id.data(), id.data() + id.size(), last); });
    if (last <= server_) return;
    server_ = last;
  }
}

void Channelz::connections(int64_t after,
                           const std::function<void(int64_t number, std::string_view peer)>& found) const {
  constexpr intptr_t kPage = 500;
  for (int64_t last = -1; last != after;) {
    last = after;
    const Text text(grpc_channelz_get_server_sockets(server_, after + 1, kPage));
    if (!text) return;
    // Each entry is {"name":"chttp2 ipv4:127.0.0.1:38140","socketId":"5"}.
    std::string peer;
    const std::string_view document = text.get();
    each(document, "name", [&](std::string_view name) {
      constexpr std::string_view kId = "\",\"socketId\":\"";
      const std::string_view rest = document.substr(static_cast<size_t>(name.data() + name.size() - document.data()));
      if (!rest.starts_with(kId)) return;
      std::from_chars(rest.data() + kId.size(), rest.data() + rest.size(), after);
      found(after, peer_of(name.substr(name.find(' ') + 1)));
    });
  }
}

bool Channelz::traffic(int64_t number, GrpcTraffic& to) const noexcept {
  const Text text(grpc_channelz_get_socket(number));
  if (!text) return false;
  to = traffic_in(text.get());
  return true;
}

}  // namespace sconce::server::rpc
