// Content-Digest (RFC 9530) and SHA-256 digests in text. Pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "sconce/weight_sources.h"

namespace sconce::server::http {

// The sha-256 digest of a Content-Digest field; nullopt for an empty field. kInvalidArgument for a malformed field, and
// for a field with only other digests, which would stay unchecked.
std::optional<Sha256Digest> content_digest(std::string_view field);

// 64 hexadecimal digits, with or without "sha-256:". kInvalidArgument.
Sha256Digest digest_from_hex(std::string_view text);

}  // namespace sconce::server::http
