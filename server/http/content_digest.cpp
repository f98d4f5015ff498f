#include "server/http/content_digest.h"

#include "sconce/check.h"
#include "sconce/excerpt.h"
#include "server/base/trim.h"
#include "server/json/base64.h"

namespace sconce::server {
namespace {

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

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
  Sha256Digest digest;
  bool good = text.size() == 2 * digest.size();
  for (size_t i = 0; good && i < digest.size(); ++i) {
    const int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
    good = high >= 0 && low >= 0;
    digest[i] = static_cast<std::byte>(high * 16 + low);
  }
  SCONCE_CHECK(good, kInvalidArgument, "sha256 must be 64 hexadecimal digits, got '", excerpt(text), "'");
  return digest;
}

}  // namespace sconce::server
