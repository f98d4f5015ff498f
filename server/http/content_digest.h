// Content-Digest (RFC 9530) and SHA-256 digests in text. Pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "sconce/weight_sources.h"

namespace sconce::server {

// The sha-256 of a Content-Digest field; nullopt if the field is empty. kInvalidArgument for a malformed field and for
// one with other digests only: they would go unchecked.
std::optional<Sha256Digest> content_digest(std::string_view field);

// 64 hexadecimal digits, "sha-256:" before them or not. kInvalidArgument.
Sha256Digest digest_from_hex(std::string_view text);

}  // namespace sconce::server
