#include "server/registry/remote/credentials/azure_signer.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <string_view>
#include <vector>

#include "sconce/check.h"
#include "server/http/client/url_text.h"
#include "server/registry/remote/credentials/azure_providers.h"
#include "server/registry/remote/credentials/bearer_signer.h"
#include "server/support/hmac.h"
#include "server/support/json/base64.h"
#include "server/support/text_buffer.h"
#include "server/support/trim.h"

namespace sconce::server::registry {
namespace {

constexpr std::string_view kVersion = "2021-08-06";  // version of the service's API

std::string rfc_1123(std::chrono::system_clock::time_point now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 40> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts)};
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 'a' - 'A');
  return out;
}

std::string plain_of(std::string_view encoded) {
  std::string out;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
  for (size_t i = 0; i < encoded.size(); ++i) {
    const bool escaped = encoded[i] == '%' && i + 2 < encoded.size();
    out += escaped ? static_cast<char>(digit(encoded[i + 1]) * 16 + digit(encoded[i + 2])) : encoded[i];
    if (escaped) i += 2;
  }
  return out;
}

std::string canonical_resource(const std::string& account, std::string_view url) {
  url.remove_prefix(http::origin_of(url).size());
  const size_t question = std::min(url.find('?'), url.size());
  std::string text = "/" + account + std::string(url.substr(0, question));
  std::map<std::string, std::string> values;
  for (const std::string& pair : split(url.substr(std::min(question + 1, url.size())), '&')) {
    const size_t equals = std::min(pair.find('='), pair.size());
    values[lower_case(pair.substr(0, equals))] =
        plain_of(std::string_view(pair).substr(std::min(equals + 1, pair.size())));
  }
  for (const auto& [name, value] : values) text += "\n" + name + ":" + value;
  return text;
}

// The values of "Name=Value;Name=Value".
std::map<std::string, std::string> parse_connection_string(const std::string& text) {
  std::map<std::string, std::string> values;
  for (const std::string& pair : split(text, ';')) {
    const size_t equals = pair.find('=');
    SCONCE_CHECK(equals != std::string::npos, kInvalidArgument,
                 "AZURE_STORAGE_CONNECTION_STRING: a part of it is not Name=Value");
    values[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return values;
}

}  // namespace

RemoteRequest AzureKeySigner::sign(RemoteRequest request) {
  request.fields.push_back("x-ms-date: " + rfc_1123(now_()));
  request.fields.push_back("x-ms-version: " + std::string(kVersion));
  std::map<std::string, std::string> fields;
  for (const std::string& field : request.fields) {
    const size_t colon = field.find(':');
    fields[lower_case(field.substr(0, colon))] = trim(field.substr(colon + 1));
  }
  std::string text = "GET\n";
  for (const char* const name :
       {"content-encoding", "content-language", "content-length", "content-md5", "content-type", "date",
        "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"})
    text += fields[name] + "\n";
  for (const auto& [name, value] : fields)
    if (name.starts_with("x-ms-")) text += name + ":" + value + "\n";
  text += canonical_resource(account_, request.url);
  const Sha256Digest digest = hmac_sha256(key_, text);
  TextBuffer signature;
  append_base64(signature, digest.data(), digest.size());
  request.fields.push_back("Authorization: SharedKey " + account_ + ":" + std::string(signature.view()));
  return request;
}

RemoteRequest AzureSasSigner::sign(RemoteRequest request) {
  request.fields.push_back("x-ms-version: " + std::string(kVersion));
  request.url += (request.url.find('?') == std::string::npos ? "?" : "&") + query_;
  return request;
}

std::string AzureAccess::url_of(const std::string& place) const {
  const size_t slash = place.find('/');
  const std::string container = place.substr(slash + 1);
  return (endpoint.empty() ? "https://" + place.substr(0, slash) + ".blob.core.windows.net" : endpoint) + "/" +
         container;
}

AzureAccess read_azure_access(const Environment& environment, const TransferSettings& transfer) {
  std::map<std::string, std::string> connection =
      parse_connection_string(environment("AZURE_STORAGE_CONNECTION_STRING"));
  const auto either = [&](const char* variable, const char* part) {
    std::string value = environment(variable);
    return value.empty() ? connection[part] : value;
  };
  AzureAccess access;
  access.endpoint =
      checked_endpoint(either("AZURE_STORAGE_SERVICE_ENDPOINT", "BlobEndpoint"), "AZURE_STORAGE_SERVICE_ENDPOINT");
  const std::string account = either("AZURE_STORAGE_ACCOUNT", "AccountName"),
                    key = either("AZURE_STORAGE_KEY", "AccountKey");
  std::string query = either("AZURE_STORAGE_SAS_TOKEN", "SharedAccessSignature");
  check_field_value(account, "AZURE_STORAGE_ACCOUNT");
  check_field_value(query, "AZURE_STORAGE_SAS_TOKEN");
  if (!key.empty()) {
    const std::optional<std::string> bytes = decode_base64(key);
    SCONCE_CHECK(bytes && !account.empty(), kInvalidArgument,
                 "AZURE_STORAGE_KEY is not a key in base64, or AZURE_STORAGE_ACCOUNT is not set");
    access.signer = std::make_shared<AzureKeySigner>(account, *bytes);
  } else if (!query.empty()) {
    access.signer = std::make_shared<AzureSasSigner>(query.starts_with('?') ? query.substr(1) : query);
  } else {
    access.signer =
        std::make_shared<BearerSigner>(std::make_shared<CredentialCache>(azure_credentials(environment, transfer)),
                                       std::vector<std::string>{"x-ms-version: " + std::string(kVersion)});
  }
  return access;
}

}  // namespace sconce::server::registry
