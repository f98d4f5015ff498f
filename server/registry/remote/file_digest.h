// FileDigest: incremental SHA-256. Used by one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "sconce/weight_sources.h"

namespace sconce::server {

class FileDigest {
 public:
  FileDigest();  // kUnavailable without OpenSSL's libcrypto
  void update(std::span<const std::byte> bytes) noexcept;
  Sha256Digest finish() noexcept;  // the object must not be used afterwards

 private:
  alignas(8) std::array<std::byte, 128> state_;
};

// 64 hexadecimal digits.
std::string hex_of(const Sha256Digest& digest);
Sha256Digest digest_of_text(std::string_view text);
// Of the whole file. kIo.
Sha256Digest digest_of_file(int file, const std::string& path);

}  // namespace sconce::server
