#include "server/support/hmac.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "sconce/check.h"

namespace sconce::server {

Sha256Digest hmac_sha256(std::string_view key, std::string_view text) {
  Sha256Digest digest;
  SCONCE_CHECK(
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
           text.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr),
      kInternal, "HMAC-SHA256 failed");
  return digest;
}

bool same_digest(const Sha256Digest& a, const Sha256Digest& b) noexcept {
  volatile unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference = difference | std::to_integer<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace sconce::server
