// PushPeers: the servers that this server may contact for a push: to ask for the push's state, and to relay weights.
// Requests name these servers, so setting weights_peers must allow each one; without it, none is allowed. Thread-safe.
//
// Questions carry the token in weights_peers_token_file, which is read for each question, or else the token of the
// push's last request. Weights are relayed with the token of the request that brings them. Each connection reads the
// certificates.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/client/admin_client.h"
#include "server/rollout/push/push_ledger.h"
#include "server/support/config.h"

namespace sconce::server::rollout {

class PushPeers {
 public:
  // kInvalidArgument for a malformed weights_peers; kIo, kInvalidArgument for a token that cannot be read.
  explicit PushPeers(const ServerConfig& config);

  bool allows(const http::AdminServer& server) const;
  // Asks another server of a push, by GET or POST of .../weights/ACTION?push=ID. If the server cannot be reached, the
  // answer's problem has the reason.
  http::Answer ask(const PushRecord& record, size_t member, std::string_view method, std::string_view action,
                   std::chrono::seconds patience) const;
  // The reason for which a peer's answer is not a success; after a 401 or a 403, with advice.
  std::string reason(const http::Answer& answer) const;
  // authorization: the field of the request that named the peer. kForbidden if the peer is not allowed; kIo or
  // kInvalidArgument for a token that cannot be read; errors of certificates.
  http::AdminClient client(const std::string& url, const std::string& authorization,
                           std::chrono::seconds patience) const;
  // The same with the token of that request.
  http::AdminClient relay_client(const std::string& url, const std::string& authorization,
                                 std::chrono::seconds patience) const;

 private:
  struct Rule {
    std::string scheme, host, port;  // empty: any
    unsigned prefix = 0;             // leading bits of an address; 0: all bits
    bool any = false, suffix = false;
  };
  static Rule rule(const std::string& text);
  static bool matches(const Rule& rule, const http::AdminServer& server);
  http::AdminClient client_of(const std::string& url, std::string token, std::chrono::seconds patience) const;
  std::string token(const std::string& authorization) const;

  const ServerConfig& config_;
  std::vector<Rule> rules_;
};

}  // namespace sconce::server::rollout
