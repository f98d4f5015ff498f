#include "server/remote/credentials/provider_chain.h"

#include <exception>

#include "server/base/failure.h"

namespace sconce::server {

std::string ProviderChain::name() const {
  const MutexLock lock(mutex_);
  return found_.empty() ? none_ : found_;
}

std::optional<IssuedCredentials> ProviderChain::fetch() {
  const std::unique_ptr<CredentialProvider> provider = find_();
  std::optional<IssuedCredentials> issued;
  const std::exception_ptr problem = exception_of([&] {
    if (provider) issued = provider->fetch();
  });
  {
    const MutexLock lock(mutex_);
    found_ = issued || problem ? provider->name() : "";
  }
  if (problem) std::rethrow_exception(problem);
  return issued;
}

}  // namespace sconce::server
