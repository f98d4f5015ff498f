#include "package_format/files/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "sconce/check.h"

namespace sconce {
namespace {

constexpr size_t kMaxAtOnce = size_t{64} << 20;

}  // namespace

SharedFile::~SharedFile() {
  if (fd_ >= 0) ::close(fd_);
}

SharedFile SharedFile::of_descriptor(int fd, uint64_t bytes, const std::filesystem::path& path) {
  const std::string own = "/proc/self/fd/" + std::to_string(fd);
  SharedFile file(::open(own.c_str(), O_RDONLY | O_CLOEXEC), bytes, path);
  SCONCE_CHECK(file.fd_ >= 0, kIo, "cannot open file again: ", path.native(), ": ", std::strerror(errno));
  return file;
}

SharedFile SharedFile::copy_of(std::span<const std::byte> bytes, const std::filesystem::path& path) {
  SharedFile file(::memfd_create("sconce-shared", MFD_CLOEXEC | MFD_ALLOW_SEALING), bytes.size(), path);
  SCONCE_CHECK(file.fd_ >= 0, kIo, "cannot make a file in memory for: ", path.native(), ": ", std::strerror(errno));
  while (!bytes.empty()) {
    const ssize_t n = ::write(file.fd_, bytes.data(), std::min(bytes.size(), kMaxAtOnce));
    if (n < 0 && errno == EINTR) continue;
    SCONCE_CHECK(n > 0, kOutOfMemory, "no memory for a copy of: ", path.native(), ": ", std::strerror(errno));
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  ::fcntl(file.fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
  return file;
}

}  // namespace sconce
