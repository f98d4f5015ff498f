#include "server/registry/remote/remote_access.h"

#include "sconce/check.h"
#include "server/http/client/url_text.h"
#include "server/registry/remote/credentials/aws_providers.h"
#include "server/registry/remote/credentials/bearer_signer.h"
#include "server/registry/remote/credentials/google_providers.h"
#include "server/support/trim.h"

namespace sconce::server::registry {
namespace {

std::shared_ptr<S3Service> service_of(std::string region, std::string endpoint,
                                      std::unique_ptr<CredentialProvider> provider) {
  std::shared_ptr<CredentialCache> cache;
  if (provider) cache = std::make_shared<CredentialCache>(std::move(provider));
  return std::make_shared<S3Service>(std::move(region), std::move(endpoint), std::move(cache));
}

// HMAC keys of Google's storage.
class GoogleKeys final : public CredentialProvider {
 public:
  explicit GoogleKeys(Environment environment) : environment_(std::move(environment)) {}
  std::string name() const override { return "the environment (GS_ACCESS_KEY_ID)"; }
  std::optional<IssuedCredentials> fetch() override {
    IssuedCredentials keys;
    keys.key = environment_("GS_ACCESS_KEY_ID");
    keys.secret = environment_("GS_SECRET_ACCESS_KEY");
    for (const std::string* const text : {&keys.key, &keys.secret})
      check_field_value(*text, "GS_ACCESS_KEY_ID or GS_SECRET_ACCESS_KEY");
    return keys;
  }

 private:
  const Environment environment_;
};

std::string read_hub_token(const Environment& environment) {
  std::string token = environment("HF_TOKEN");
  if (token.empty()) {
    std::string path = environment("HF_TOKEN_PATH");
    if (path.empty()) {
      const std::string home = environment("HF_HOME");
      path = (home.empty() ? environment.home(".cache/huggingface") : home) + "/token";
    }
    token = trim(text_of_file(path), " \t\r\n");
  }
  check_field_value(token, "the token of hf");
  return token;
}

const std::shared_ptr<S3Service>& service_for(const RemoteUrl& url, const RemoteAccess& access) {
  return url.scheme == RemoteScheme::kS3 ? access.s3 : access.gs;
}

RemoteRequest bucket_request(const RemoteUrl& url, const RemoteAccess& access, const std::string& below) {
  const std::shared_ptr<S3Service>& service = service_for(url, access);
  RemoteRequest request;
  if (url.scheme == RemoteScheme::kGs && access.gs_tokens) {
    request.signer = access.gs_tokens;
  } else {
    request.signer = std::make_shared<S3Signer>(service, url.origin);
  }
  request.url = service->url_of(url.origin) + below;
  return request;
}

RemoteRequest container_request(const RemoteUrl& url, const RemoteAccess& access, const std::string& below) {
  RemoteRequest request;
  request.signer = access.azure.signer;
  request.url = access.azure.url_of(url.origin) + below;
  return request;
}

void add_token(RemoteRequest& request, const RemoteAccess& access) {
  if (const std::string token = access.hub_token(); !token.empty())
    request.fields.push_back("Authorization: Bearer " + token);
}

}  // namespace

RemoteAccess read_remote_access(const Environment& environment, const TransferSettings& transfer) {
  RemoteAccess access;
  std::string region = environment.first({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (region.empty()) {
    const AwsProfiles profiles(environment);
    region = profiles.value(profiles.chosen(), "region");
  }
  if (region.empty()) region = "us-east-1";
  check_field_value(region, "the region of s3");
  SCONCE_CHECK(region.find_first_of(":/?#@") == std::string::npos, kInvalidArgument,
               "the region of s3: not the name of a region");
  std::string endpoint =
      checked_endpoint(environment.first({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}), "AWS_ENDPOINT_URL");
  access.s3 = service_of(std::move(region), std::move(endpoint), aws_credentials(environment, transfer));

  endpoint = checked_endpoint(environment("GS_ENDPOINT_URL"), "GS_ENDPOINT_URL");
  if (endpoint.empty()) endpoint = "https://storage.googleapis.com";
  const bool has_keys = !environment("GS_ACCESS_KEY_ID").empty();
  access.gs = service_of("auto", std::move(endpoint), has_keys ? std::make_unique<GoogleKeys>(environment) : nullptr);
  if (!has_keys)
    access.gs_tokens =
        std::make_shared<BearerSigner>(std::make_shared<CredentialCache>(google_credentials(environment, transfer)));

  access.azure = read_azure_access(environment, transfer);

  access.hub_token = [environment] { return read_hub_token(environment); };
  access.hub_token();  // throws for an invalid value
  access.hub_endpoint = checked_endpoint(environment("HF_ENDPOINT"), "HF_ENDPOINT");
  if (access.hub_endpoint.empty()) access.hub_endpoint = "https://huggingface.co";
  return access;
}

RemoteRequest request_for(const RemoteUrl& url, const RemoteAccess& access) {
  RemoteRequest request;
  switch (url.scheme) {
    case RemoteScheme::kS3:
    case RemoteScheme::kGs:
      return bucket_request(url, access, "/" + http::encoded_path(url.path));
    case RemoteScheme::kAzure:
      return container_request(url, access, "/" + http::encoded_path(url.path));
    case RemoteScheme::kHub:
      request.url = access.hub_endpoint + "/" + url.origin + "/resolve/" + http::encoded_value(url.revision) + "/" +
                    http::encoded_path(url.path);
      add_token(request, access);
      return request;
    default:
      request.url = url.key();
      request.netrc = true;
      return request;
  }
}

RemoteRequest listing_request(const RemoteUrl& bucket, std::string_view prefix, const RemoteAccess& access,
                              std::string_view token) {
  if (bucket.scheme == RemoteScheme::kAzure)
    return container_request(bucket, access,
                             "?comp=list" + (token.empty() ? "" : "&marker=" + http::encoded_value(token)) +
                                 "&prefix=" + http::encoded_value(prefix) + "&restype=container");
  // Sorted by name, as signatures require.
  std::string query = "/?";
  if (!token.empty()) query += "continuation-token=" + http::encoded_value(token) + "&";
  // Some characters of keys cannot be represented in XML.
  query += "encoding-type=url&list-type=2&prefix=" + http::encoded_value(prefix);
  return bucket_request(bucket, access, query);
}

RemoteRequest tree_request(const RemoteUrl& prefix, const RemoteAccess& access) {
  RemoteRequest request;
  request.url = access.hub_endpoint + "/api/models/" + prefix.origin + "/tree/" + http::encoded_value(prefix.revision) +
                (prefix.path.empty() ? "" : "/" + http::encoded_path(prefix.path)) + "?recursive=true";
  add_token(request, access);
  return request;
}

}  // namespace sconce::server::registry
