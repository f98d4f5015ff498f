#include "server/registry/remote/credentials/bearer_signer.h"

#include <algorithm>

#include "package_format/text/json_value.h"
#include "sconce/check.h"
#include "server/registry/remote/credentials/environment.h"
#include "server/registry/remote/transfer/transfer.h"
#include "src/support/parse_number.h"

namespace sconce::server::registry {

RemoteRequest BearerSigner::sign(RemoteRequest request) {
  request.fields.insert(request.fields.end(), fields_.begin(), fields_.end());
  const auto current = tokens_->get();
  if (!current) return request;
  request.signed_as.issue = current->number;
  request.fields.push_back("Authorization: Bearer " + current->credentials.secret);
  return request;
}

bool BearerSigner::correct(const RemoteAnswer& refusal) {
  const uint64_t issue = refusal.signed_as.issue;
  return refusal.status == 401 && issue != 0 && tokens_->renew(issue);
}

IssuedCredentials parse_token(std::string_view text, IssuedCredentials::Time now) {
  const OrderedJson json = OrderedJson::parse(text, nullptr, false);
  const auto token = json.is_object() ? json.find("access_token") : json.end();
  SCONCE_CHECK(json.is_object() && token != json.end() && token->is_string(), kUnavailable,
               "the answer has no access_token");
  IssuedCredentials issued;
  issued.secret = token->get<std::string>();
  check_field_value(issued.secret, "the token of the answer");
  SCONCE_CHECK(!issued.secret.empty(), kUnavailable, "the answer's access_token is empty");
  // Some services send the number as text.
  if (const auto lives = json.find("expires_in"); lives != json.end()) {
    const auto seconds = lives->is_number_integer() ? std::optional(lives->get<int64_t>())
                         : lives->is_string()       ? parse_number<int64_t>(lives->get<std::string>())
                                                    : std::nullopt;
    constexpr int64_t kLongest = 30 * 24 * 3600;
    if (seconds) issued.expires = now + std::chrono::seconds(std::clamp<int64_t>(*seconds, 0, kLongest));
  }
  return issued;
}

}  // namespace sconce::server::registry
