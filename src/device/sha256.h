// SHA-256 over bytes that pass by, by OpenSSL's libcrypto, which is opened when the first digest is begun.
//
// Confined to one thread. kUnavailable names the package where libcrypto is missing.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace sconce {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> bytes);
  // The digest of all bytes since the construction or the last finish(); the next update() begins anew.
  std::array<std::byte, 32> finish();

 private:
  struct Free {
    void operator()(void* context) const noexcept;
  };
  std::unique_ptr<void, Free> context_;  // EVP_MD_CTX
};

// "9f86d081...", lower case.
std::string to_hex(std::span<const std::byte> bytes);

}  // namespace sconce
