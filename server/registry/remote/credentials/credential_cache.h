// CredentialCache: the credentials of one provider, fetched when they are first needed and again before they expire.
//
//   provider (environment, web identity, metadata server, ...) --fetch--> cache --get--> signers of requests
//
// One thread fetches at a time. While credentials are good, the others use them meanwhile. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "sconce/mutex.h"

namespace sconce::server {

struct IssuedCredentials {
  using Time = std::chrono::system_clock::time_point;
  std::string key;             // the access key; empty for a bearer token
  std::string secret;          // or the token
  std::string session;         // empty: there is none
  Time expires = Time::max();  // max: unknown, or never
  bool same_as(const IssuedCredentials& other) const {
    return key == other.key && secret == other.secret && session == other.session;
  }
};

class CredentialProvider {
 public:
  virtual ~CredentialProvider() = default;
  // For errors: "web identity (AWS_ROLE_ARN)".
  virtual std::string name() const = 0;
  // nullopt: this machine has none, so requests go unsigned. Throws why they cannot be had. Called by one thread at a
  // time.
  virtual std::optional<IssuedCredentials> fetch() = 0;
};

class CredentialCache {
 public:
  using Time = IssuedCredentials::Time;
  using Now = std::function<Time()>;
  explicit CredentialCache(
      std::unique_ptr<CredentialProvider> provider, Now now = [] { return std::chrono::system_clock::now(); });

  struct Current {
    IssuedCredentials credentials;
    uint64_t number = 0;  // of the fetch
  };
  // nullopt: there are none. Throws what kept them from being fetched, with the provider's name; credentials that are
  // still good are used meanwhile.
  std::optional<Current> get();
  // The store says that those of this fetch have expired. Returns whether there are others now.
  bool renew(uint64_t number);
  // "the credentials are those of PROVIDER", or that there are none.
  std::string describe() const;

 private:
  bool is_good(Time now) const SCONCE_REQUIRES(mutex_);
  void fetch() SCONCE_REQUIRES(mutex_);

  const std::unique_ptr<CredentialProvider> provider_;
  const Now now_;
  mutable Mutex mutex_;
  ConditionVariable fetched_;
  bool fetching_ SCONCE_GUARDED_BY(mutex_) = false;
  bool any_ SCONCE_GUARDED_BY(mutex_) = false;  // something was fetched, if only that there is nothing
  std::optional<IssuedCredentials> issued_ SCONCE_GUARDED_BY(mutex_);
  Time refresh_at_ SCONCE_GUARDED_BY(mutex_);
  uint64_t number_ SCONCE_GUARDED_BY(mutex_) = 0;
};

}  // namespace sconce::server
