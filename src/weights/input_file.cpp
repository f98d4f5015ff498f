#include "src/weights/input_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>

#include "package_format/files/file_lease.h"
#include "sconce/check.h"
#include "src/support/hex.h"
#include "src/support/sha256.h"

namespace sconce::weights {
namespace {

// Upper limit of one read, so that progress is visible; the kernel's own limit is higher.
constexpr size_t kMaxInputBytes = size_t{64} << 20;

}  // namespace

InputFile::InputFile(const std::filesystem::path& path) : path_(path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  SCONCE_CHECK(fd_ >= 0, kIo, "cannot open file: ", path.string(), ": ", std::strerror(errno));
  InputFile owner(std::move(*this));  // closes it if the rest throws
  SCONCE_CHECK(::fstat(owner.fd_, &owner.status_) == 0, kIo, "cannot read file: ", path.string(), ": ",
               std::strerror(errno));
  SCONCE_CHECK(S_ISREG(owner.status_.st_mode), kIo, "cannot read file: ", path.string(), ": not a regular file");
  owner.settle();
  owner.status_.st_size = static_cast<off_t>(owner.stamp_.size());
  ::posix_fadvise(owner.fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
  *this = std::move(owner);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), status_(other.status_), stamp_(other.stamp_) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(status_, other.status_);
  std::swap(stamp_, other.stamp_);
  return *this;
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

void InputFile::settle() {
  constexpr int kMaxLooks = 200;
  constexpr timespec kBetweenLooks{0, 5'000'000};
  for (int i = 0; i < kMaxLooks; ++i) {
    // In this order: a writer that opened the file before the stamp is detected, and one that writes after it changes
    // the stamp.
    stamp_ = ContentStamp::settled(fd_);
    SCONCE_CHECK(stamp_.is_known(), kIo, "cannot read file: ", path_.string(), ": ", std::strerror(errno));
    if (!is_open_for_writing(fd_)) return;
    ::nanosleep(&kBetweenLooks, nullptr);
  }
  SCONCE_FAIL(kFailedPrecondition, "file is open for writing: ", path_.string());
}

void InputFile::read(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(fd_, out.data(), std::min(out.size(), kMaxInputBytes), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    SCONCE_CHECK(n >= 0, kIo, "cannot read file: ", path_.string(), ": ", std::strerror(errno));
    SCONCE_CHECK(n > 0, kFailedPrecondition, "file became shorter while it was read: ", path_.string(), ": ended at ",
                 offset, " of ", size(), " bytes");
    offset += static_cast<uint64_t>(n);
    out = out.subspan(static_cast<size_t>(n));
  }
}

void InputFile::check_unchanged() const {
  ContentStamp stamp = stamp_;
  errno = 0;
  const bool same = stamp.still_of(fd_);
  SCONCE_CHECK(same || errno == 0, kIo, "cannot read file: ", path_.string(), ": ", std::strerror(errno));
  SCONCE_CHECK(same, kFailedPrecondition, "file changed while it was read: ", path_.string());
}

void InputFile::check_same_path() const {
  struct stat now {};
  SCONCE_CHECK(::stat(path_.c_str(), &now) == 0 && now.st_dev == status_.st_dev && now.st_ino == status_.st_ino,
               kFailedPrecondition, "file was replaced while it was opened: ", path_.string());
}

Sha256Digest InputFile::sha256() const {
  constexpr size_t kBlock = size_t{256} << 10;
  Sha256 digest;
  const auto block = std::make_unique<std::byte[]>(kBlock);
  for (uint64_t at = 0; at < size();) {
    const std::span<std::byte> piece(block.get(), std::min<uint64_t>(kBlock, size() - at));
    read(at, piece);
    digest.update(piece);
    at += piece.size();
  }
  return digest.finish();
}

void check_digest(const Sha256Digest& found, const Sha256Digest& expected, const std::string& where) {
  SCONCE_CHECK(found == expected, kInvalidArgument, "SHA-256 differs: ", where, ": expected ", to_hex(expected),
               ", found ", to_hex(found));
}

}  // namespace sconce::weights
