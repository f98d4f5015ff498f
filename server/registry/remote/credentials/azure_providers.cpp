#include "server/registry/remote/credentials/azure_providers.h"

#include "sconce/check.h"
#include "server/http/client/url_text.h"
#include "server/registry/remote/credentials/bearer_signer.h"
#include "server/registry/remote/credentials/provider_chain.h"
#include "server/support/failure.h"
#include "server/support/trim.h"

namespace sconce::server::registry {
namespace {

constexpr std::string_view kStorage = "https://storage.azure.com/";

std::unique_ptr<CredentialProvider> find_azure(const Environment& environment, const TransferSettings& transfer) {
  const bool has_proof = !environment.first({"AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE"}).empty();
  if (has_proof && !environment("AZURE_CLIENT_ID").empty())
    return std::make_unique<AzureApplication>(environment, transfer);
  return std::make_unique<AzureManagedIdentity>(environment, transfer);
}

}  // namespace

std::string AzureApplication::name() const {
  return environment_("AZURE_CLIENT_SECRET").empty() ? "workload identity (AZURE_CLIENT_ID, AZURE_FEDERATED_TOKEN_FILE)"
                                                     : "the environment (AZURE_CLIENT_ID, AZURE_CLIENT_SECRET)";
}

std::optional<IssuedCredentials> AzureApplication::fetch() {
  const std::string tenant = environment_("AZURE_TENANT_ID"), secret = environment_("AZURE_CLIENT_SECRET");
  SCONCE_CHECK(!tenant.empty(), kInvalidArgument, "AZURE_TENANT_ID is not set");
  std::string authority = checked_endpoint(environment_("AZURE_AUTHORITY_HOST"), "AZURE_AUTHORITY_HOST");
  if (authority.empty()) authority = "https://login.microsoftonline.com";
  SCONCE_CHECK(authority.starts_with("https://") || http::is_plain_loopback(authority + "/"), kInvalidArgument,
               "AZURE_AUTHORITY_HOST: it must begin with https://");
  RemoteRequest request;
  request.url = authority + "/" + http::encoded_value(tenant) + "/oauth2/v2.0/token";
  request.fields = {"Content-Type: application/x-www-form-urlencoded"};
  request.body = "grant_type=client_credentials&client_id=" + http::encoded_value(environment_("AZURE_CLIENT_ID")) +
                 "&scope=" + http::encoded_value(std::string(kStorage) + ".default");
  if (!secret.empty()) {
    request.body += "&client_secret=" + http::encoded_value(secret);
  } else {
    const std::string token =
        needed_text_of_file(environment_("AZURE_FEDERATED_TOKEN_FILE"), "AZURE_FEDERATED_TOKEN_FILE");
    request.body +=
        "&client_assertion_type=" + http::encoded_value("urn:ietf:params:oauth:client-assertion-type:jwt-bearer") +
        "&client_assertion=" + http::encoded_value(trim(token, " \t\r\n"));
  }
  return parse_token(Transfer(transfer_).document(request, ""), std::chrono::system_clock::now());
}

std::optional<IssuedCredentials> AzureManagedIdentity::fetch() {
  const std::string app_service = environment_("IDENTITY_ENDPOINT"), header = environment_("IDENTITY_HEADER"),
                    named = environment_("AZURE_POD_IDENTITY_AUTHORITY_HOST"), client = environment_("AZURE_CLIENT_ID");
  RemoteRequest request;
  request.direct = true;
  TransferSettings near = transfer_;
  near.connect = std::chrono::seconds(1);
  near.stall = std::chrono::seconds(5);
  const bool is_set_up = !app_service.empty() || !named.empty();
  near.tries = is_set_up ? 3 : 1;
  if (!app_service.empty()) {
    SCONCE_CHECK(!header.empty(), kUnsupported,
                 "IDENTITY_ENDPOINT is set without IDENTITY_HEADER: identities of Azure Arc and Service Fabric are not "
                 "supported");
    check_field_value(header, "IDENTITY_HEADER");
    request.url = checked_endpoint(app_service, "IDENTITY_ENDPOINT") + "?api-version=2019-08-01";
    request.fields = {"X-IDENTITY-HEADER: " + header};
  } else {
    const std::string host = checked_endpoint(named, "AZURE_POD_IDENTITY_AUTHORITY_HOST");
    request.url =
        (host.empty() ? "http://169.254.169.254" : host) + "/metadata/identity/oauth2/token?api-version=2018-02-01";
    request.fields = {"Metadata: true"};
  }
  request.url += "&resource=" + http::encoded_value(kStorage);
  if (!client.empty()) request.url += "&client_id=" + http::encoded_value(client);
  std::string text;
  const std::exception_ptr problem = exception_of([&] { text = Transfer(near).document(request, ""); });
  if (!problem) return parse_token(text, std::chrono::system_clock::now());
  SCONCE_CHECK(!near.stop || !*near.stop, kCancelled, "cancelled");
  if (is_set_up) std::rethrow_exception(problem);
  return std::nullopt;
}

std::unique_ptr<CredentialProvider> azure_credentials(Environment environment, TransferSettings transfer) {
  return std::make_unique<ProviderChain>(
      [environment = std::move(environment), transfer = std::move(transfer)] {
        return find_azure(environment, transfer);
      },
      "neither AZURE_STORAGE_KEY nor AZURE_STORAGE_SAS_TOKEN, AZURE_CLIENT_ID with AZURE_CLIENT_SECRET or "
      "AZURE_FEDERATED_TOKEN_FILE, or a managed identity is there");
}

}  // namespace sconce::server::registry
