// Providers of tokens for Google's storage: application default credentials, in Google's order (docs/remote.md).
#pragma once

#include <memory>
#include <string>

#include "package_format/text/json_value.h"
#include "server/registry/remote/credentials/credential_cache.h"
#include "server/registry/remote/credentials/environment.h"
#include "server/registry/remote/transfer/transfer.h"

namespace sconce::server::registry {

// The credentials in a JSON file, by its `type`: service_account (a key), authorized_user (of gcloud), external_account
// (workload identity federation, with a token from a file or a URL), impersonated_service_account.
class GoogleFile final : public CredentialProvider {
 public:
  GoogleFile(std::string path, std::string where, TransferSettings transfer)
      : path_(std::move(path)), where_(std::move(where)), transfer_(std::move(transfer)) {}
  std::string name() const override { return path_ + " (" + where_ + ")"; }
  std::optional<IssuedCredentials> fetch() override;

 private:
  IssuedCredentials issue(const OrderedJson& file, int depth);
  IssuedCredentials by_key(const OrderedJson& file);
  IssuedCredentials by_user(const OrderedJson& file);
  IssuedCredentials by_exchange(const OrderedJson& file);
  IssuedCredentials impersonated(const std::string& url, const std::string& token);
  std::string subject_token(const OrderedJson& source);

  const std::string path_, where_;
  const TransferSettings transfer_;
};

// The metadata server of Google's machines, also of GKE's workload identity. nullopt without the server or without a
// service account.
class GoogleMetadata final : public CredentialProvider {
 public:
  GoogleMetadata(Environment environment, TransferSettings transfer)
      : environment_(std::move(environment)), transfer_(std::move(transfer)) {}
  std::string name() const override { return "Google's metadata server"; }
  std::optional<IssuedCredentials> fetch() override;

 private:
  const Environment environment_;
  const TransferSettings transfer_;
};

// The first configured provider of these: GOOGLE_APPLICATION_CREDENTIALS, the file that gcloud writes, the metadata
// server.
std::unique_ptr<CredentialProvider> google_credentials(Environment environment, TransferSettings transfer);

// "HEADER.CLAIMS.SIGNATURE" with RS256. key: an RSA private key in PEM. kInvalidArgument for other keys.
std::string signed_jwt(const OrderedJson& header, const OrderedJson& claims, const std::string& key);

}  // namespace sconce::server::registry
