#include "src/support/sha256.h"

#include <openssl/evp.h>

#include <new>

#include "sconce/check.h"

namespace sconce {
namespace {

void begin(void* context) {
  SCONCE_CHECK(EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(context), EVP_sha256(), nullptr) == 1, kUnavailable,
               "libcrypto offers no SHA-256");
}

}  // namespace

void Sha256::Free::operator()(void* context) const noexcept { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context)); }

// The first function that is called opens libcrypto, or throws (src/device/lazy_library.h).
Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (!context_) throw std::bad_alloc();
  begin(context_.get());
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  const int done = EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_.get()), bytes.data(), bytes.size());
  SCONCE_CHECK(done == 1, kInternal, "libcrypto failed to digest ", bytes.size(), " bytes");
}

std::array<std::byte, 32> Sha256::finish() {
  std::array<std::byte, 32> digest;
  auto* out = reinterpret_cast<unsigned char*>(digest.data());
  const int done = EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_.get()), out, nullptr);
  SCONCE_CHECK(done == 1, kInternal, "libcrypto failed to finish a digest");
  begin(context_.get());
  return digest;
}

std::array<std::byte, 32> sha256_of(std::span<const std::byte> bytes) {
  Sha256 digest;
  digest.update(bytes);
  return digest.finish();
}

std::array<std::byte, 32> sha256_of(std::string_view text) { return sha256_of(std::as_bytes(std::span(text))); }

}  // namespace sconce
