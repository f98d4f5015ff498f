// ProviderChain: the first configured provider; each fetch selects it again. Used by one thread at a time, except
// name().
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "sconce/mutex.h"
#include "server/registry/remote/credentials/credential_cache.h"

namespace sconce::server::registry {

class ProviderChain final : public CredentialProvider {
 public:
  // Null: none is configured.
  using Find = std::function<std::unique_ptr<CredentialProvider>()>;
  // none: lists the places that were searched, for the case that no provider is configured.
  ProviderChain(Find find, std::string none) : find_(std::move(find)), none_(std::move(none)) {}
  std::string name() const override;
  std::optional<IssuedCredentials> fetch() override;

 private:
  const Find find_;
  const std::string none_;
  mutable Mutex mutex_;
  std::string found_ SCONCE_GUARDED_BY(mutex_);  // the name of the last provider
};

}  // namespace sconce::server::registry
