#include "server/registry/remote/credentials/aws_answers.h"

#include "package_format/text/json_value.h"
#include "sconce/check.h"
#include "server/registry/remote/credentials/aws_signature.h"
#include "server/registry/remote/credentials/environment.h"
#include "server/registry/remote/transfer/store_error.h"
#include "server/support/failure.h"

namespace sconce::server::registry {
namespace {

IssuedCredentials checked(IssuedCredentials issued, const std::string& expires) {
  SCONCE_CHECK(!issued.key.empty() && !issued.secret.empty(), kUnavailable,
               "the answer has no AccessKeyId and SecretAccessKey");
  for (const std::string* const text : {&issued.key, &issued.secret, &issued.session})
    check_field_value(*text, "the answer's credentials");
  if (!expires.empty()) {
    const auto time = parse_iso_time(expires);
    SCONCE_CHECK(time, kUnavailable, "the answer's Expiration is not a time");
    issued.expires = *time;
  }
  return issued;
}

}  // namespace

IssuedCredentials parse_issued_json(std::string_view text) {
  const OrderedJson json = OrderedJson::parse(text, nullptr, false);
  SCONCE_CHECK(json.is_object(), kUnavailable, "the answer is no JSON object");
  const auto string_of = [&](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const std::string session = string_of("SessionToken");
  return checked(
      {string_of("AccessKeyId"), string_of("SecretAccessKey"), session.empty() ? string_of("Token") : session},
      string_of("Expiration"));
}

IssuedCredentials parse_issued_xml(std::string_view text) {
  return checked({xml_text(text, "AccessKeyId"), xml_text(text, "SecretAccessKey"), xml_text(text, "SessionToken")},
                 xml_text(text, "Expiration"));
}

}  // namespace sconce::server::registry
