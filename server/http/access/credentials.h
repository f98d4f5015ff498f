// Credentials: tokens with their scopes, and the server's certificates. They are read from files, and read again when a
// file changes.
//
// A snapshot is immutable. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/mutex.h"
#include "server/http/router.h"
#include "server/http/tls.h"
#include "server/support/config.h"
#include "server/support/files/file_stamp.h"

namespace sconce::server::http {

// A set of scopes that a token grants.
enum Scopes : uint8_t { kNoScope = 0, kInferScope = 1, kMetricsScope = 2, kAdminScope = 4 };

class CredentialSet {
 public:
  struct Token {
    std::string text;
    uint8_t scopes = 0;
  };
  struct Refusal {
    int status = 0;  // 0: not refused
    std::string_view message;
  };

  bool needs_token(uint8_t scope) const noexcept { return (needed_ & scope) != 0; }
  // authorization: the request's field, or empty. accepted: other scopes that also grant access.
  Refusal check(uint8_t scope, std::string_view authorization, uint8_t accepted = kNoScope) const noexcept;
  // For connections of a listener; null if the listener has no TLS.
  const TlsContext* tls(Listeners listener) const noexcept;

 private:
  friend class Credentials;
  std::vector<Token> tokens_;
  uint8_t needed_ = 0;  // scopes that at least one token has; such a scope is protected
  std::array<std::shared_ptr<const TlsContext>, 3> tls_;  // in the order of Listeners
};

class Credentials {
 public:
  // kIo and kInvalidArgument name the setting, the file and the defect.
  explicit Credentials(const ServerConfig& config);

  std::shared_ptr<const CredentialSet> snapshot() const;
  // Increases with each new snapshot.
  uint64_t revision() const noexcept { return revision_.load(std::memory_order_acquire); }
  bool from_files() const noexcept { return !files_.empty(); }
  // Reads the changed files, or all files. An invalid file is logged, and the previous snapshot stays in force.
  void refresh(bool all = false);

 private:
  struct File {
    StampedFile file;
    bool of_tls = false;
  };

  std::vector<CredentialSet::Token> read_tokens() const;
  void read_certificates(CredentialSet& set) const;
  void publish(CredentialSet set);

  const ServerConfig& config_;
  Mutex refreshing_;
  std::vector<File> files_;  // fixed after construction, except the stamps (guarded by refreshing_)
  // After a failed read each poll retries, because descriptors or memory may be available by then.
  struct Reading {
    bool stale = false;
    std::string problem;  // the last one; each problem is logged once
  };
  Reading tokens_ SCONCE_GUARDED_BY(refreshing_), certificates_ SCONCE_GUARDED_BY(refreshing_);
  mutable Mutex mutex_;
  std::shared_ptr<const CredentialSet> set_ SCONCE_GUARDED_BY(mutex_);
  std::atomic<uint64_t> revision_{0};
};

}  // namespace sconce::server::http
