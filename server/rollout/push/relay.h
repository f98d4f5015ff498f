// Relay: forwards the body of an upload to the next server of its push while it arrives, so that the coordinator sends
// it once. Each piece is sent before the next one is read: a slow server slows down the servers before it, and nothing
// is buffered. Used only by the upload's thread.
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

namespace sconce::server::rollout {

class Relay {
 public:
  // terms: of this server; the next server is the member after it. patience: maximum time in which the next server
  // accepts nothing. check: called every 50 ms of waiting; its exceptions are passed on.
  // kForbidden.
  Relay(const PushPeers& peers, const PushTerms& terms, std::chrono::seconds patience, std::function<void()> check);

  // Call this before the body is read. Errors of begin(), send() and end() name the server; their code corresponds to
  // its status, or is kUnavailable.
  void begin(const std::string& target, uint64_t bytes, const http::UploadFields& fields);
  void send(std::span<const std::byte> piece);
  // Call this once this server has staged the set. Waits until all later servers have staged it too.
  void end();

 private:
  [[noreturn]] void fail(const http::Answer& answer) const;

  const std::string url_;
  const http::AdminClient next_;
  const std::function<void()> check_;
  http::HttpClient upload_;
};

// The query with which the next server stages the same set, from this server's own query.
std::string query_for_next(const std::string& query, const PushTerms& terms);

}  // namespace sconce::server::rollout
