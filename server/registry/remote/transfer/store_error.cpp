#include "server/registry/remote/transfer/store_error.h"

#include <algorithm>

#include "package_format/text/json_value.h"
#include "server/http/client/http_client.h"
#include "server/support/failure.h"
#include "server/support/trim.h"

namespace sconce::server::registry {
namespace {

constexpr size_t kLongestCode = 100, kLongestMessage = 190;

struct Remedy {
  std::string_view code, text;
};

constexpr Remedy kRemedies[] = {
    // S3 and compatible stores.
    {"AccessDenied", "the credentials need s3:GetObject for the object and s3:ListBucket for the bucket"},
    {"AllAccessDisabled", "the bucket's owner has disabled it"},
    {"AuthorizationHeaderMalformed", "set AWS_REGION to the bucket's region"},
    {"PermanentRedirect", "set AWS_REGION to the bucket's region"},
    {"IllegalLocationConstraintException", "set AWS_REGION to the bucket's region"},
    {"ExpiredToken", "the session token has expired: get new credentials"},
    {"ExpiredTokenException", "the token has expired: get new credentials"},
    {"TokenRefreshRequired", "the session token has expired: get new credentials"},
    {"InvalidToken", "the session token is not one of these credentials"},
    {"InvalidAccessKeyId", "the store does not know the access key: do credentials and endpoint belong together?"},
    {"InvalidClientTokenId", "the service does not know the access key: do credentials and endpoint belong together?"},
    {"SignatureDoesNotMatch",
     "the credentials' secret key is not that of the access key, or a proxy changes requests on their way"},
    {"RequestTimeTooSkewed", "set the clock of this machine"},
    {"NoSuchBucket", "create the bucket, or correct its name"},
    {"NoSuchKey", "upload it, or correct the address"},
    {"SlowDown", "the store has too many requests: try again later"},
    {"InvalidIdentityToken", "the role's trust policy must name the issuer and the audience of the token"},
    {"KMS.DisabledException", "the key that encrypts the object is disabled"},
    {"InvalidObjectState", "the object is archived: restore it first"},
    // Azure Blob Storage.
    {"AuthenticationFailed", "the credentials are not the storage account's, or have expired"},
    {"AuthorizationFailure", "the storage account's network rules or the credentials do not allow it"},
    {"AuthorizationPermissionMismatch", "give the identity of the credentials the role Storage Blob Data Reader"},
    {"AuthorizationSourceIPMismatch", "the credentials are for other addresses than this machine's"},
    {"KeyBasedAuthenticationNotPermitted", "the storage account takes no keys as credentials: use an identity"},
    {"PublicAccessNotPermitted", "the storage account has no public containers: credentials are missing"},
    {"NoAuthenticationInformation", "credentials are missing"},
    {"ContainerNotFound", "create the container, or correct its name"},
    {"BlobNotFound", "upload it, or correct the address"},
    {"ResourceNotFound", "correct the address; where it is right, credentials are missing"},
    // Hubs.
    {"GatedRepo", "accept its terms on the hub with the account of the credentials (HF_TOKEN)"},
    {"RepoNotFound", "correct its name; if it is private, credentials are missing (HF_TOKEN)"},
    {"RevisionNotFound", "correct the revision after @"},
    {"EntryNotFound", "correct the path"},
    // Services that issue tokens.
    {"invalid_grant", "the credentials have expired, were revoked, or this machine's clock is wrong"},
    {"invalid_client", "the identity provider does not know the client"},
};

std::string unescaped(std::string_view text) {
  constexpr std::pair<std::string_view, char> kEntities[] = {
      {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&amp;", '&'}};
  std::string out;
  while (!text.empty()) {
    const auto* const entity = std::find_if(std::begin(kEntities), std::end(kEntities),
                                            [&](const auto& e) { return text.starts_with(e.first); });
    const bool found = entity != std::end(kEntities);
    out += found ? entity->second : text.front();
    text.remove_prefix(found ? entity->first.size() : 1);
  }
  return out;
}

std::string string_at(const OrderedJson& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return {};
  if (found->is_string()) return found->get<std::string>();
  return found->is_number_integer() ? std::to_string(found->get<int64_t>()) : std::string();
}

// OAuth's {"error": CODE, "error_description": TEXT}, and Google's and Azure's {"error": {"status": CODE, "message":
// TEXT}}.
void take_json(std::string_view text, StoreError& error) {
  const OrderedJson json = OrderedJson::parse(text, nullptr, false);
  if (!json.is_object()) return;
  if (const auto inner = json.find("error"); inner != json.end() && inner->is_object()) {
    error.code = string_at(*inner, "status");
    if (error.code.empty()) error.code = string_at(*inner, "code");
    error.message = string_at(*inner, "message");
    return;
  }
  error.code = string_at(json, "error");
  error.message = string_at(json, "error_description");
  if (error.code.empty()) error.code = string_at(json, "code");
  if (error.code.empty()) error.code = string_at(json, "Code");
  if (error.message.empty()) error.message = string_at(json, "message");
  if (error.message.empty()) error.message = string_at(json, "Message");
  // A hub sends a sentence in place of a code.
  if (error.message.empty() && error.code.find(' ') != std::string::npos) error.message.swap(error.code);
}

std::string shortened_to(std::string text, size_t most) {
  text = trim(text, " \t\r\n");
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

}  // namespace

std::string xml_text(std::string_view xml, const std::string& name) {
  const std::string begin = "<" + name + ">", end = "</" + name + ">";
  const size_t at = xml.find(begin);
  if (at == std::string_view::npos) return {};
  xml.remove_prefix(at + begin.size());
  const size_t last = xml.find('<');
  if (last == std::string_view::npos || !xml.substr(last).starts_with(end)) return {};
  return unescaped(xml.substr(0, last));
}

StoreError parse_store_error(std::string_view text, const std::map<std::string, std::string>& fields) {
  const auto field = [&](const char* name) {
    const auto found = fields.find(name);
    return found == fields.end() ? std::string() : found->second;
  };
  StoreError error;
  text = text.substr(0, http::HttpClient::kMaxErrorText);
  const std::string_view start = trim(text, " \t\r\n");
  if (start.starts_with('{')) {
    succeeds([&] { take_json(start, error); });
  } else {
    error.code = xml_text(text, "Code");
    error.message = xml_text(text, "Message");
    error.region = xml_text(text, "Region");
  }
  for (const char* name : {"x-ms-error-code", "x-error-code"})
    if (std::string code = field(name); !code.empty()) error.code = std::move(code);
  if (std::string said = field("x-error-message"); !said.empty()) error.message = std::move(said);
  if (std::string region = field("x-amz-bucket-region"); !region.empty()) error.region = std::move(region);
  error.code = shortened_to(std::move(error.code), kLongestCode);
  error.message = shortened_to(std::move(error.message), kLongestMessage);
  const bool is_region = error.region.size() <= 40 && std::all_of(error.region.begin(), error.region.end(), [](char c) {
                           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
                         });
  if (!is_region) error.region.clear();
  return error;
}

std::string remedy_for(const StoreError& error) {
  if (error.code == "AccessDenied" && error.message.find("sts:") != std::string::npos)
    return "the role's trust policy must let these credentials take it on";
  for (const Remedy& remedy : kRemedies) {
    if (remedy.code != error.code) continue;
    std::string text(remedy.text);
    if (text.find("AWS_REGION") != std::string::npos && !error.region.empty()) text += ", " + error.region;
    return text;
  }
  return {};
}

}  // namespace sconce::server::registry
