// Amazon's signature, version 4, for S3: https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html.
// Pure functions.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "server/registry/remote/credentials/credential_cache.h"
#include "server/registry/remote/transfer/request.h"

namespace sconce::server::registry {

// Adds the fields of the signature. The query of the URL must be sorted by name and percent-encoded.
void sign_for_aws(RemoteRequest& request, const IssuedCredentials& credentials, const std::string& region,
                  const std::string& service, std::chrono::system_clock::time_point now);

// "Sun, 29 Nov 2026 14:56:43 GMT".
std::optional<std::chrono::system_clock::time_point> parse_http_date(std::string_view text);
// "2026-11-29T14:56:43Z", with optional fractions of a second, or with an offset instead of Z.
std::optional<std::chrono::system_clock::time_point> parse_iso_time(std::string_view text);

}  // namespace sconce::server::registry
