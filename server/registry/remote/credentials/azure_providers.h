// Providers of tokens for Azure Blob Storage, in the order of Azure's SDKs (docs/remote.md).
#pragma once

#include <memory>
#include <string>

#include "server/registry/remote/credentials/credential_cache.h"
#include "server/registry/remote/credentials/environment.h"
#include "server/registry/remote/transfer/transfer.h"

namespace sconce::server::registry {

// An application of Entra ID: with its secret (AZURE_CLIENT_SECRET), or with a token in a file that the platform writes
// (AZURE_FEDERATED_TOKEN_FILE: workload identity of AKS).
class AzureApplication final : public CredentialProvider {
 public:
  AzureApplication(Environment environment, TransferSettings transfer)
      : environment_(std::move(environment)), transfer_(std::move(transfer)) {}
  std::string name() const override;
  std::optional<IssuedCredentials> fetch() override;

 private:
  const Environment environment_;
  const TransferSettings transfer_;
};

// Managed identity: from App Service and others at IDENTITY_ENDPOINT, else from the machine's metadata service. nullopt
// without either.
class AzureManagedIdentity final : public CredentialProvider {
 public:
  AzureManagedIdentity(Environment environment, TransferSettings transfer)
      : environment_(std::move(environment)), transfer_(std::move(transfer)) {}
  std::string name() const override { return "the managed identity"; }
  std::optional<IssuedCredentials> fetch() override;

 private:
  const Environment environment_;
  const TransferSettings transfer_;
};

// The first configured provider of these.
std::unique_ptr<CredentialProvider> azure_credentials(Environment environment, TransferSettings transfer);

}  // namespace sconce::server::registry
