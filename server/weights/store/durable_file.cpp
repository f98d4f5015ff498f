#include "server/weights/store/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "sconce/check.h"

namespace sconce::server::weights {
namespace {

// Maximum bytes per call, below the limit of Linux.
constexpr size_t kMaxWriteAtOnce = size_t{1} << 30;
// More than the size of a journal with the servers of 64 pushes, whose URLs arrived in request headers.
constexpr size_t kSmallFile = size_t{4} << 20;

}  // namespace

std::string system_reason() { return std::generic_category().message(errno); }

DurableFile::DurableFile(int directory, std::string path, std::string name)
    : directory_(directory), path_(std::move(path)), name_(std::move(name)) {
  file_ = Descriptor(
      ::openat(directory_, (name_ + kUnfinished).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  SCONCE_CHECK(file_.get() >= 0, kIo, "cannot write ", path_, "/", name_, kUnfinished, ": ", system_reason());
}

DurableFile::~DurableFile() {
  if (!kept_ && file_.get() >= 0) ::unlinkat(directory_, (name_ + kUnfinished).c_str(), 0);
}

void DurableFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), std::min(bytes.size(), kMaxWriteAtOnce));
    if (written < 0 && errno == EINTR) continue;
    SCONCE_CHECK(written > 0, kIo, "cannot write ", path_, "/", name_, kUnfinished, ": ", system_reason());
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void DurableFile::keep() {
  const std::string unfinished = name_ + kUnfinished;
  SCONCE_CHECK(::fsync(file_.get()) == 0, kIo, "cannot write ", path_, "/", unfinished,
               " to the disk: ", system_reason());
  SCONCE_CHECK(::renameat(directory_, unfinished.c_str(), directory_, name_.c_str()) == 0, kIo, "cannot rename ", path_,
               "/", unfinished, ": ", system_reason());
  kept_ = true;
  sync_directory(directory_, path_);
}

void sync_directory(int directory, const std::string& path) {
  // File systems that do not support this for directories return EINVAL.
  SCONCE_CHECK(::fsync(directory) == 0 || errno == EINVAL, kIo, "cannot write the directory ", path,
               " to the disk: ", system_reason());
}

std::string read_small_file(int directory, const std::string& path, const std::string& name) {
  const Descriptor file(::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  SCONCE_CHECK(file.get() >= 0 || errno != ENOENT, kNotFound, "there is no ", path, "/", name);
  SCONCE_CHECK(file.get() >= 0, kIo, "cannot read ", path, "/", name, ": ", system_reason());
  std::string text;
  char piece[4096];
  for (;;) {
    const ssize_t count = ::read(file.get(), piece, sizeof piece);
    if (count < 0 && errno == EINTR) continue;
    SCONCE_CHECK(count >= 0, kIo, "cannot read ", path, "/", name, ": ", system_reason());
    if (count == 0) return text;
    text.append(piece, static_cast<size_t>(count));
    SCONCE_CHECK(text.size() <= kSmallFile, kIo, "too large: ", path, "/", name);
  }
}

}  // namespace sconce::server::weights
