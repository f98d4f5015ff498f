#include "server/http/content_digest.h"

#include "sconce/check.h"
#include "server/support/json/base64.h"
#include "server/support/trim.h"
#include "src/support/excerpt.h"
#include "src/support/hex.h"

namespace sconce::server::http {

std::optional<Sha256Digest> content_digest(std::string_view field) {
  if (trim(field).empty()) return std::nullopt;
  std::optional<Sha256Digest> digest;
  for (std::string_view rest = field; !rest.empty();) {
    const size_t comma = rest.find(',');
    const std::string_view member = trim(rest.substr(0, comma));
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    const size_t equals = member.find('=');
    const std::string_view value = equals == std::string_view::npos ? "" : member.substr(equals + 1);
    SCONCE_CHECK(value.size() >= 2 && value.front() == ':' && value.back() == ':', kInvalidArgument,
                 "Content-Digest must be sha-256=:BASE64:");
    if (member.substr(0, equals) != "sha-256") continue;
    const std::string_view text = value.substr(1, value.size() - 2);
    Sha256Digest bytes;
    std::byte decoded[base64_decoded_bound(44)];
    const bool sized = text.size() == 44 && !digest;
    const std::optional<size_t> size = sized ? decode_base64(text, decoded) : std::nullopt;
    SCONCE_CHECK(size && *size == bytes.size(), kInvalidArgument, "Content-Digest: not one SHA-256 in base64");
    std::copy_n(decoded, bytes.size(), bytes.begin());
    digest = bytes;
  }
  SCONCE_CHECK(digest, kInvalidArgument, "Content-Digest has no sha-256");
  return digest;
}

Sha256Digest digest_from_hex(std::string_view text) {
  constexpr std::string_view kPrefix = "sha-256:";
  if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
  const std::optional<Sha256Digest> digest = sha256_from_hex(text);
  SCONCE_CHECK(digest, kInvalidArgument, "sha256 must be 64 hexadecimal digits, got '", excerpt(text), "'");
  return *digest;
}

}  // namespace sconce::server::http
