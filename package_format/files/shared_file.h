// SharedFile: a descriptor through which another process maps the bytes of a file or of memory. It is read-only,
// close-on-exec, and holds no lease. Used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>

namespace sconce {

class SharedFile {
 public:
  // Reopens the file of a descriptor, without a right to write and without a lease. kIo.
  static SharedFile of_descriptor(int fd, uint64_t bytes, const std::filesystem::path& path);
  // A sealed copy in memory. kOutOfMemory, kIo.
  static SharedFile copy_of(std::span<const std::byte> bytes, const std::filesystem::path& path);

  SharedFile(SharedFile&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), bytes_(other.bytes_), path_(std::move(other.path_)) {}
  SharedFile& operator=(SharedFile&&) = delete;
  ~SharedFile();

  int descriptor() const noexcept { return fd_; }
  uint64_t bytes() const noexcept { return bytes_; }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  SharedFile(int fd, uint64_t bytes, std::filesystem::path path) : fd_(fd), bytes_(bytes), path_(std::move(path)) {}
  int fd_ = -1;
  uint64_t bytes_ = 0;
  std::filesystem::path path_;  // for a file of a directory: relative to it
};

}  // namespace sconce
