// A whole regular file, mapped read-only and shared with the page cache. If another process writes the file, its bytes
// stay unchanged, or check() reports the change (write_protected_file.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "package_format/files/write_protected_file.h"

namespace sconce {

class MappedFile {
 public:
  MappedFile() = default;
  // `concern` outlives this object; while it is 0, check() does nothing. The errors of WriteProtectedFile::open.
  MappedFile(const std::filesystem::path& path, std::atomic<uint32_t>& concern)
      : file_(WriteProtectedFile::open(path.native(), concern)) {}
  MappedFile(MappedFile&& other) noexcept : file_(std::move(other.file_)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~MappedFile() {
    if (file_) file_->close();
  }

  std::span<const std::byte> bytes() const noexcept { return file_ ? file_->bytes() : std::span<const std::byte>(); }
  WriteProtectedFile::Means means() const noexcept { return file_->means(); }
  // kUnavailable if bytes read so far may differ from those at the time of opening.
  void check() const { file_->check(); }
  // The known reason for that, without a new check; empty if none is known.
  std::string why_lost() const { return file_->why_lost(); }
  // The same bytes for another process, under this path. The errors of WriteProtectedFile::share().
  SharedFile share(const std::filesystem::path& path) const { return file_->share(path); }
  // Frees pages; the next read loads them again.
  void give_up_pages(std::span<const std::byte> bytes) const noexcept { file_->give_up_pages(bytes); }

 private:
  std::shared_ptr<WriteProtectedFile> file_;
};

}  // namespace sconce
