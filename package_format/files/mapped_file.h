// A whole regular file, mapped read-only and shared with the page cache. Its bytes stay what they were when others
// write the file, or check() says that they do not: kept_file.h tells how.
#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "package_format/files/kept_file.h"

namespace sconce {

class MappedFile {
 public:
  MappedFile() = default;
  // `concern` outlives this: while it is 0, check() would do nothing. The errors of KeptFile::open.
  MappedFile(const std::filesystem::path& path, std::atomic<uint32_t>& concern)
      : file_(KeptFile::open(path.native(), concern)) {}
  MappedFile(MappedFile&& other) noexcept : file_(std::move(other.file_)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~MappedFile() {
    if (file_) file_->close();
  }

  std::span<const std::byte> bytes() const noexcept { return file_ ? file_->bytes() : std::span<const std::byte>(); }
  KeptFile::Means means() const noexcept { return file_->means(); }
  // kUnavailable, if what was read until now may not have been what was opened.
  void check() const { file_->check(); }
  // Why it is lost, as far as is known without looking; empty: it is not.
  std::string why_lost() const { return file_->why_lost(); }
  // These need not be resident: they are read again when they are touched.
  void give_up_pages(std::span<const std::byte> bytes) const noexcept { file_->give_up_pages(bytes); }

 private:
  std::shared_ptr<KeptFile> file_;
};

}  // namespace sconce
