#include "server/registry/remote/credentials/google_providers.h"

#include <filesystem>

#include "sconce/check.h"
#include "server/http/client/url_text.h"
#include "server/registry/remote/credentials/aws_signature.h"
#include "server/registry/remote/credentials/bearer_signer.h"
#include "server/registry/remote/credentials/provider_chain.h"
#include "server/support/failure.h"
#include "server/support/json_document.h"
#include "server/support/trim.h"
#include "src/support/excerpt.h"

namespace sconce::server::registry {
namespace {

constexpr const char* kScope = "https://www.googleapis.com/auth/devstorage.read_only";
constexpr const char* kTokenService = "https://oauth2.googleapis.com/token";
constexpr int kMaxImpersonations = 3;

IssuedCredentials::Time time_now() { return std::chrono::system_clock::now(); }

std::string text_at(const OrderedJson& json, const char* name) {
  const auto found = json.is_object() ? json.find(name) : json.end();
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string needed_text_at(const OrderedJson& json, const char* name) {
  std::string text = text_at(json, name);
  SCONCE_CHECK(!text.empty(), kInvalidArgument, "it has no '", name, "'");
  return text;
}

// Secrets are sent only over https, or stay on this machine.
std::string safe_url(std::string url, const char* name) {
  check_field_value(url, name);
  SCONCE_CHECK(url.starts_with("https://") || http::is_plain_loopback(url), kInvalidArgument, name,
               ": it must begin with https://");
  return url;
}

RemoteRequest form(std::string url, std::initializer_list<std::pair<const char*, std::string>> values) {
  RemoteRequest request;
  request.url = std::move(url);
  request.fields = {"Content-Type: application/x-www-form-urlencoded"};
  for (const auto& [name, value] : values)
    request.body += (request.body.empty() ? "" : "&") + std::string(name) + "=" + http::encoded_value(value);
  return request;
}

// Null: none is configured.
std::unique_ptr<CredentialProvider> find_google(const Environment& environment, const TransferSettings& transfer) {
  if (const std::string path = environment("GOOGLE_APPLICATION_CREDENTIALS"); !path.empty())
    return std::make_unique<GoogleFile>(path, "GOOGLE_APPLICATION_CREDENTIALS", transfer);
  const std::string config = environment("CLOUDSDK_CONFIG");
  const std::string path =
      (config.empty() ? environment.home(".config/gcloud") : config) + "/application_default_credentials.json";
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored))
    return std::make_unique<GoogleFile>(path, "application default credentials", transfer);
  if (environment("NO_GCE_CHECK") == "true") return nullptr;
  return std::make_unique<GoogleMetadata>(environment, transfer);
}

}  // namespace

std::optional<IssuedCredentials> GoogleFile::fetch() {
  const OrderedJson file = OrderedJson::parse(needed_text_of_file(path_, where_), nullptr, false);
  SCONCE_CHECK(file.is_object(), kInvalidArgument, "it is no JSON object");
  return issue(file, 0);
}

IssuedCredentials GoogleFile::issue(const OrderedJson& file, int depth) {
  const std::string type = text_at(file, "type");
  if (type == "service_account") return by_key(file);
  if (type == "authorized_user") return by_user(file);
  if (type == "external_account") return by_exchange(file);
  SCONCE_CHECK(type == "impersonated_service_account" && depth < kMaxImpersonations, kUnsupported, "its type '",
               excerpt(type),
               "' is not supported: service_account, authorized_user, external_account and "
               "impersonated_service_account are");
  const auto source = file.find("source_credentials");
  SCONCE_CHECK(source != file.end() && source->is_object(), kInvalidArgument, "it has no 'source_credentials'");
  return impersonated(needed_text_at(file, "service_account_impersonation_url"), issue(*source, depth + 1).secret);
}

IssuedCredentials GoogleFile::by_key(const OrderedJson& file) {
  const std::string service = text_at(file, "token_uri").empty() ? kTokenService : text_at(file, "token_uri");
  const std::string url = safe_url(service, "token_uri");
  const int64_t now = std::chrono::duration_cast<std::chrono::seconds>(time_now().time_since_epoch()).count();
  OrderedJson header = {{"alg", "RS256"}, {"typ", "JWT"}};
  if (const std::string id = text_at(file, "private_key_id"); !id.empty()) header["kid"] = id;
  const OrderedJson claims = {{"iss", needed_text_at(file, "client_email")},
                              {"scope", kScope},
                              {"aud", url},
                              {"iat", now},
                              {"exp", now + 3600}};
  const std::string assertion = signed_jwt(header, claims, needed_text_at(file, "private_key"));
  const RemoteRequest request =
      form(url, {{"grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"}, {"assertion", assertion}});
  return parse_token(Transfer(transfer_).document(request, ""), time_now());
}

IssuedCredentials GoogleFile::by_user(const OrderedJson& file) {
  const std::string service = text_at(file, "token_uri").empty() ? kTokenService : text_at(file, "token_uri");
  const RemoteRequest request =
      form(safe_url(service, "token_uri"), {{"grant_type", "refresh_token"},
                                            {"client_id", needed_text_at(file, "client_id")},
                                            {"client_secret", text_at(file, "client_secret")},
                                            {"refresh_token", needed_text_at(file, "refresh_token")}});
  return parse_token(Transfer(transfer_).document(request, ""), time_now());
}

IssuedCredentials GoogleFile::by_exchange(const OrderedJson& file) {
  const auto source = file.find("credential_source");
  SCONCE_CHECK(source != file.end() && source->is_object(), kInvalidArgument, "it has no 'credential_source'");
  const std::string token = subject_token(*source);
  const std::string impersonation = text_at(file, "service_account_impersonation_url");
  // A token that impersonates an account must be allowed to call IAM.
  const char* const scope = impersonation.empty() ? kScope : "https://www.googleapis.com/auth/cloud-platform";
  const RemoteRequest request = form(safe_url(needed_text_at(file, "token_url"), "token_url"),
                                     {{"grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"},
                                      {"audience", needed_text_at(file, "audience")},
                                      {"scope", scope},
                                      {"requested_token_type", "urn:ietf:params:oauth:token-type:access_token"},
                                      {"subject_token_type", needed_text_at(file, "subject_token_type")},
                                      {"subject_token", token}});
  IssuedCredentials issued = parse_token(Transfer(transfer_).document(request, ""), time_now());
  return impersonation.empty() ? issued : impersonated(impersonation, issued.secret);
}

// The token that the platform issues for this workload.
std::string GoogleFile::subject_token(const OrderedJson& source) {
  const std::string path = text_at(source, "file"), url = text_at(source, "url");
  std::string text;
  if (!path.empty()) {
    text = needed_text_of_file(path, "credential_source");
  } else {
    SCONCE_CHECK(!url.empty(), kUnsupported,
                 "its credential_source is neither a file nor a url (an executable and AWS are not supported)");
    RemoteRequest request;
    request.url = url;
    check_field_value(url, "the url of credential_source");
    if (const auto fields = source.find("headers"); fields != source.end() && fields->is_object())
      for (const auto& [name, value] : fields->items()) {
        if (!value.is_string()) continue;
        check_field_value(name, "a header of credential_source");
        const std::string line = value.get<std::string>();
        SCONCE_CHECK(line.find_first_of("\r\n") == std::string::npos, kInvalidArgument,
                     "a header of credential_source has more than one line");
        request.fields.push_back(name + ": " + line);
      }
    text = Transfer(transfer_).document(request, "");
  }
  const auto format = source.find("format");
  if (format != source.end() && text_at(*format, "type") == "json") {
    const OrderedJson json = OrderedJson::parse(text, nullptr, false);
    text = text_at(json, needed_text_at(*format, "subject_token_field_name").c_str());
  }
  text = trim(text, " \t\r\n");
  SCONCE_CHECK(!text.empty(), kNotFound, "the token of credential_source is empty");
  return text;
}

IssuedCredentials GoogleFile::impersonated(const std::string& url, const std::string& token) {
  RemoteRequest request;
  request.url = safe_url(url, "service_account_impersonation_url");
  request.fields = {"Content-Type: application/json", "Authorization: Bearer " + token};
  request.body = dump(OrderedJson{{"scope", {kScope}}});
  const OrderedJson json = OrderedJson::parse(Transfer(transfer_).document(request, ""), nullptr, false);
  IssuedCredentials issued;
  issued.secret = text_at(json, "accessToken");
  SCONCE_CHECK(!issued.secret.empty(), kUnavailable, "the answer has no accessToken");
  check_field_value(issued.secret, "the token of the answer");
  if (const auto expires = parse_iso_time(text_at(json, "expireTime"))) issued.expires = *expires;
  return issued;
}

std::optional<IssuedCredentials> GoogleMetadata::fetch() {
  const std::string named = environment_("GCE_METADATA_HOST");
  check_field_value(named, "GCE_METADATA_HOST");
  TransferSettings near = transfer_;
  near.connect = std::chrono::seconds(1);
  near.stall = std::chrono::seconds(5);
  near.tries = named.empty() ? 1 : 3;
  RemoteRequest request;
  request.direct = true;
  request.url = "http://" + (named.empty() ? "metadata.google.internal" : named) +
                "/computeMetadata/v1/instance/service-accounts/default/token";
  request.fields = {"Metadata-Flavor: Google"};
  std::string text;
  const std::exception_ptr problem = exception_of([&] { text = Transfer(near).document(request, ""); });
  if (!problem) return parse_token(text, time_now());
  SCONCE_CHECK(!near.stop || !*near.stop, kCancelled, "cancelled");
  if (describe_failure(problem).code == ErrorCode::kNotFound) return std::nullopt;
  if (!named.empty()) std::rethrow_exception(problem);
  return std::nullopt;
}

std::unique_ptr<CredentialProvider> google_credentials(Environment environment, TransferSettings transfer) {
  return std::make_unique<ProviderChain>(
      [environment = std::move(environment), transfer = std::move(transfer)] {
        return find_google(environment, transfer);
      },
      "neither GS_ACCESS_KEY_ID nor GOOGLE_APPLICATION_CREDENTIALS, gcloud's file or a metadata server is there");
}

}  // namespace sconce::server::registry
