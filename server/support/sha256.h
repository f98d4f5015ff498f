// SHA-256 and HMAC-SHA256, with OpenSSL's libcrypto, which is loaded at the first use. kUnavailable names the package
// if libcrypto is missing.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sconce/weight_sources.h"

namespace sconce::server {

// The digest of a stream of bytes. Used by one thread.
class Sha256 {
 public:
  Sha256();

  void update(std::span<const std::byte> bytes);
  Sha256Digest finish();  // call this once

 private:
  struct Free {
    void operator()(void* context) const noexcept;
  };
  std::unique_ptr<void, Free> context_;  // EVP_MD_CTX
};

Sha256Digest sha256_of(std::span<const std::byte> bytes);
Sha256Digest hmac_sha256(std::string_view key, std::string_view text);
// Compares in constant time.
bool same_digest(const Sha256Digest& a, const Sha256Digest& b) noexcept;
// "9f86d081...", lower case.
std::string hex_of(std::span<const std::byte> bytes);

}  // namespace sconce::server
