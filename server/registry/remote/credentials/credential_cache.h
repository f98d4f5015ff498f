// CredentialCache: the credentials of one provider, fetched at the first use and renewed before they expire.
//
//   provider (environment, web identity, metadata server, ...) --fetch--> cache --get--> signers of requests
//
// One thread at a time fetches. Meanwhile the other threads use the old credentials, if these are still valid.
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "sconce/mutex.h"

namespace sconce::server::registry {

struct IssuedCredentials {
  using Time = std::chrono::system_clock::time_point;
  std::string key;             // the access key; empty for a bearer token
  std::string secret;          // the secret key or the token
  std::string session;         // session token; empty: none
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
  // nullopt: this machine has no credentials, so requests are not signed. Throws if credentials are configured and
  // cannot be fetched. Called by one thread at a time.
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
  // nullopt: no credentials. Throws the error of a failed fetch, with the provider's name, unless the old credentials
  // are still valid.
  std::optional<Current> get();
  // The store says that the credentials of this fetch have expired. Returns whether newer ones are available.
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
  bool any_ SCONCE_GUARDED_BY(mutex_) = false;  // a fetch has succeeded, even if it found no credentials
  std::optional<IssuedCredentials> issued_ SCONCE_GUARDED_BY(mutex_);
  Time refresh_at_ SCONCE_GUARDED_BY(mutex_);
  uint64_t number_ SCONCE_GUARDED_BY(mutex_) = 0;
};

}  // namespace sconce::server::registry
