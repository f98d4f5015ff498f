// What tells whether a file has other content than before, without reading it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace sconce::server {

// Of what a path names: writing changes size or time, renaming a file into place changes the inode.
struct FileStamp {
  uint64_t device = 0, inode = 0, bytes = 0;
  int64_t modified_ns = 0;
  // nullopt: there is nothing, or it cannot be looked at.
  static std::optional<FileStamp> of(const char* path) noexcept;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// Of several files together.
struct FileStamps {
  uint64_t identity = 0, bytes = 0;
  int64_t modified_ns = 0;
  void add(const char* path) noexcept;  // of one that is gone, nothing is added: that counts as a change
  // Of a file that is not here: its validator (ETag) and its size.
  void add(std::string_view validator, uint64_t size) noexcept;
  friend bool operator==(const FileStamps&, const FileStamps&) = default;
};

// A file that is read again when its stamp is another one. Used by one thread at a time.
class StampedFile {
 public:
  // Takes the stamp, so make it before the file is read.
  explicit StampedFile(std::string path) : path_(std::move(path)) { changed(); }
  const std::string& path() const noexcept { return path_; }
  // Whether the stamp differs from the last one, which it replaces. While the file is gone it has not changed.
  bool changed() noexcept;

 private:
  std::string path_;
  FileStamp stamp_;
};

}  // namespace sconce::server
