// Relay: passes the body of an upload on to the next server of its push while it arrives, so that the pusher sends it
// once. Each piece is sent before the next one is read: a slow server slows the ones before it, and nothing is kept.
// Used only by the upload's thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "server/rollout/push/push_ledger.h"
#include "server/rollout/push/push_peers.h"

namespace sconce::server {

class Relay {
 public:
  // terms: of this server; the next one is the member after it. patience: for a next server that takes nothing. check:
  // as in AdminUpload. kForbidden.
  Relay(const PushPeers& peers, const PushTerms& terms, std::chrono::seconds patience, std::function<void()> check);

  // Before anything of the body is read. The errors of all three name the server; they have the code that its status
  // stands for, or kUnavailable.
  void begin(const std::string& target, uint64_t bytes, const UploadFields& fields);
  void send(std::span<const std::byte> piece);
  // Call this once this server has staged the set. Waits until the servers behind it have, too.
  void end();

 private:
  [[noreturn]] void fail();

  const std::string url_;
  std::unique_ptr<AdminUpload> upload_;
};

// The query by which this server's successor stages the same, from this server's own query.
std::string query_for_next(const std::string& query, const PushTerms& terms);

}  // namespace sconce::server
