// HMAC-SHA256, with OpenSSL's libcrypto, which the first call opens. kUnavailable names the package if libcrypto is
// missing.
#pragma once

#include <string_view>

#include "sconce/weight_sources.h"

namespace sconce::server {

Sha256Digest hmac_sha256(std::string_view key, std::string_view text);
// Compares in constant time.
bool same_digest(const Sha256Digest& a, const Sha256Digest& b) noexcept;

}  // namespace sconce::server
