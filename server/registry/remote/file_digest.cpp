#include "server/registry/remote/file_digest.h"

#include <openssl/sha.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <string_view>
#include <vector>

#include "sconce/check.h"
#include "server/weights/store/durable_file.h"

// OpenSSL recommends the EVP_* functions. These functions use the same code, and libsconce uses them as well.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace sconce::server {
namespace {

SHA256_CTX* context_of(std::array<std::byte, 128>& state) noexcept {
  static_assert(sizeof(SHA256_CTX) <= sizeof state);
  return reinterpret_cast<SHA256_CTX*>(state.data());
}

}  // namespace

FileDigest::FileDigest() { SHA256_Init(new (state_.data()) SHA256_CTX); }

void FileDigest::update(std::span<const std::byte> bytes) noexcept {
  SHA256_Update(context_of(state_), bytes.data(), bytes.size());
}

Sha256Digest FileDigest::finish() noexcept {
  Sha256Digest digest;
  SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()), context_of(state_));
  return digest;
}

std::string hex_of(const Sha256Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : digest) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

Sha256Digest digest_of_text(std::string_view text) {
  FileDigest digest;
  digest.update(std::as_bytes(std::span(text)));
  return digest.finish();
}

Sha256Digest digest_of_file(int file, const std::string& path) {
  FileDigest digest;
  std::vector<std::byte> piece(size_t{256} << 10);
  for (off_t at = 0;;) {
    const ssize_t count = ::pread(file, piece.data(), piece.size(), at);
    if (count < 0 && errno == EINTR) continue;
    SCONCE_CHECK(count >= 0, kIo, "cannot read ", path, ": ", system_reason());
    if (count == 0) return digest.finish();
    digest.update(std::span(piece).first(static_cast<size_t>(count)));
    at += count;
  }
}

}  // namespace sconce::server

#pragma GCC diagnostic pop
