// A whole regular file, mapped read-only and shared with the page cache. Immutable.
//
// The file must be replaced by rename, not rewritten in place, while it is mapped.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>

namespace sconce {

class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::filesystem::path& path);  // kIo names path and reason
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();

  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace sconce
