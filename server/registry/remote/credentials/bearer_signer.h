// BearerSigner: signs requests with an OAuth 2.0 token. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/registry/remote/credentials/credential_cache.h"
#include "server/registry/remote/transfer/request.h"

namespace sconce::server::registry {

class BearerSigner final : public RequestSigner {
 public:
  // fields: added to each request.
  explicit BearerSigner(std::shared_ptr<CredentialCache> tokens, std::vector<std::string> fields = {})
      : tokens_(std::move(tokens)), fields_(std::move(fields)) {}
  RemoteRequest sign(RemoteRequest request) override;
  bool correct(const RemoteAnswer& refusal) override;
  std::string describe() const override { return tokens_->describe(); }

 private:
  const std::shared_ptr<CredentialCache> tokens_;
  const std::vector<std::string> fields_;
};

// {"access_token": ..., "expires_in": SECONDS} from a token service; the token becomes the secret. kUnavailable for
// other documents.
IssuedCredentials parse_token(std::string_view text, IssuedCredentials::Time now);

}  // namespace sconce::server::registry
