#include "server/support/sha256.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "sconce/check.h"

namespace sconce::server {

void Sha256::Free::operator()(void* context) const noexcept { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context)); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  SCONCE_CHECK(context_ && EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(context_.get()), EVP_sha256(), nullptr) == 1,
               kOutOfMemory, "no memory for a digest");
}

void Sha256::update(std::span<const std::byte> bytes) {
  SCONCE_CHECK(EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_.get()), bytes.data(), bytes.size()) == 1, kInternal,
               "SHA-256 failed");
}

Sha256Digest Sha256::finish() {
  Sha256Digest digest;
  SCONCE_CHECK(EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_.get()),
                                  reinterpret_cast<unsigned char*>(digest.data()), nullptr) == 1,
               kInternal, "SHA-256 failed");
  return digest;
}

Sha256Digest sha256_of(std::span<const std::byte> bytes) {
  Sha256 digest;
  digest.update(bytes);
  return digest.finish();
}

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

std::string hex_of(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte b : bytes) {
    text += kDigits[std::to_integer<unsigned>(b) >> 4];
    text += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

}  // namespace sconce::server
