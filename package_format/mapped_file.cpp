#include "package_format/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sconce/check.h"

namespace sconce {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  // Not blocking: a FIFO in the place of a file must not stop us before fstat tells.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  SCONCE_CHECK(file.fd >= 0, kIo, "cannot open file: ", path.native(), ": ", std::strerror(errno));
  struct stat status {};
  SCONCE_CHECK(::fstat(file.fd, &status) == 0, kIo, "cannot read file: ", path.native(), ": ", std::strerror(errno));
  SCONCE_CHECK(S_ISREG(status.st_mode), kIo, "not a regular file: ", path.native());
  const size_t size = static_cast<size_t>(status.st_size);
  if (size == 0) return;
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  SCONCE_CHECK(data != MAP_FAILED, kIo, "cannot map file: ", path.native(), ": ", std::strerror(errno));
  bytes_ = {static_cast<const std::byte*>(data), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace sconce
