// Requests for Azure Blob Storage: the URLs of containers, and the signers of requests: an account's key, a shared
// access signature, or tokens (docs/remote.md). Thread-safe.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "server/registry/remote/credentials/environment.h"
#include "server/registry/remote/transfer/request.h"
#include "server/registry/remote/transfer/transfer.h"

namespace sconce::server::registry {

// Signs with an account's key (Shared Key):
// https://learn.microsoft.com/en-us/rest/api/storageservices/authorize-with-shared-key.
class AzureKeySigner final : public RequestSigner {
 public:
  using Now = std::chrono::system_clock::time_point (*)();
  // key: decoded bytes.
  AzureKeySigner(std::string account, std::string key, Now now = &std::chrono::system_clock::now)
      : account_(std::move(account)), key_(std::move(key)), now_(now) {}
  RemoteRequest sign(RemoteRequest request) override;
  bool correct(const RemoteAnswer&) override { return false; }
  std::string describe() const override { return "the credentials are the key of the storage account " + account_; }

 private:
  const std::string account_, key_;
  const Now now_;
};

// Adds a shared access signature to the query.
class AzureSasSigner final : public RequestSigner {
 public:
  explicit AzureSasSigner(std::string query) : query_(std::move(query)) {}
  RemoteRequest sign(RemoteRequest request) override;
  bool correct(const RemoteAnswer&) override { return false; }
  std::string describe() const override { return "the credentials are a shared access signature"; }

 private:
  const std::string query_;
};

struct AzureAccess {
  std::string endpoint;  // with the account; empty: Azure's endpoint
  std::shared_ptr<RequestSigner> signer;
  // The container's URL, without a trailing slash. place: ACCOUNT/CONTAINER.
  std::string url_of(const std::string& place) const;
};

// kInvalidArgument for an invalid connection string or key.
AzureAccess read_azure_access(const Environment& environment, const TransferSettings& transfer);

}  // namespace sconce::server::registry
