// SHA-256 of a stream of bytes, with OpenSSL's libcrypto, which the first digest opens.
//
// Used by one thread. kUnavailable names the package if libcrypto is missing.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace sconce {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> bytes);
  // Returns the digest of all bytes since construction or the last finish(). The next update() starts a new digest.
  std::array<std::byte, 32> finish();

 private:
  struct Free {
    void operator()(void* context) const noexcept;
  };
  std::unique_ptr<void, Free> context_;  // EVP_MD_CTX
};

std::array<std::byte, 32> sha256_of(std::span<const std::byte> bytes);
std::array<std::byte, 32> sha256_of(std::string_view text);

}  // namespace sconce
