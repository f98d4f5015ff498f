#include "server/registry/remote/credentials/provider_chain.h"

#include <exception>

#include "server/support/failure.h"

namespace sconce::server::registry {

std::string ProviderChain::name() const {
  const MutexLock lock(mutex_);
  return found_.empty() ? none_ : found_;
}

std::optional<IssuedCredentials> ProviderChain::fetch() {
  std::unique_ptr<CredentialProvider> provider;
  std::optional<IssuedCredentials> issued;
  const std::exception_ptr problem = exception_of([&] {
    provider = find_();
    if (provider) issued = provider->fetch();
  });
  {
    const MutexLock lock(mutex_);
    const bool counts = issued || problem;
    found_ = !counts ? "" : provider ? provider->name() : "what this environment sets up";
  }
  if (problem) std::rethrow_exception(problem);
  return issued;
}

}  // namespace sconce::server::registry
