#include "server/registry/remote/file_digest.h"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <vector>

#include "sconce/check.h"
#include "server/weights/store/durable_file.h"
#include "src/support/sha256.h"

namespace sconce::server::registry {

Sha256Digest digest_of_file(int file, const std::string& path) {
  Sha256 digest;
  std::vector<std::byte> piece(size_t{256} << 10);
  for (off_t at = 0;;) {
    const ssize_t count = ::pread(file, piece.data(), piece.size(), at);
    if (count < 0 && errno == EINTR) continue;
    SCONCE_CHECK(count >= 0, kIo, "cannot read ", path, ": ", weights::system_reason());
    if (count == 0) return digest.finish();
    digest.update(std::span(piece).first(static_cast<size_t>(count)));
    at += count;
  }
}

}  // namespace sconce::server::registry
