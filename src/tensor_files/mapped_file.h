// MappedFile: the bytes of a file, mapped privately (writes stay in this process). Immutable; thread-safe.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "sconce/tensor.h"

namespace sconce::tensor_files {

class MappedFile {
 public:
  // kIo names the path and the system's reason. Regular files only.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<std::byte> bytes() const noexcept { return bytes_; }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  explicit MappedFile(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
  std::span<std::byte> bytes_;
};

// A tensor over `data` in the mapping: a view that keeps the mapping alive if `data` is aligned to the dtype, else a
// copy. `data` has exactly the elements of sizes and strides (dense).
Tensor view_or_copy(const std::shared_ptr<const MappedFile>& file, std::span<std::byte> data, DType dtype,
                    IntSpan sizes, IntSpan strides);

}  // namespace sconce::tensor_files
