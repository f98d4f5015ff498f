// The documents in which Amazon's services and agents issue credentials. Pure functions. kUnavailable for other
// documents; the error shows nothing of them, because they may hold secrets.
#pragma once

#include <string_view>

#include "server/registry/remote/credentials/credential_cache.h"

namespace sconce::server::registry {

// JSON of an agent, of the metadata service (names: AccessKeyId, SecretAccessKey, Token, Expiration) or of a
// credential_process (SessionToken).
IssuedCredentials parse_issued_json(std::string_view text);
// XML of STS.
IssuedCredentials parse_issued_xml(std::string_view text);

}  // namespace sconce::server::registry
