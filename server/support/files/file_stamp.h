// Detects whether a file has changed, without reading it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace sconce::server {

// Of the file that a path names: writing changes size or time; renaming a file into place changes the inode.
struct FileStamp {
  uint64_t device = 0, inode = 0, bytes = 0;
  int64_t modified_ns = 0;
  // nullopt: no file, or it cannot be accessed.
  static std::optional<FileStamp> of(const char* path) noexcept;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// Of several files combined.
struct FileStamps {
  uint64_t identity = 0, bytes = 0;
  int64_t modified_ns = 0;
  void add(const char* path) noexcept;  // a missing file adds nothing, which counts as a change
  // Of a remote file: its validator (ETag) and its size.
  void add(std::string_view validator, uint64_t size) noexcept;
  friend bool operator==(const FileStamps&, const FileStamps&) = default;
};

// A file that is read again when its stamp changes. Used by one thread at a time.
class StampedFile {
 public:
  // Takes the stamp, so construct the object before reading the file.
  explicit StampedFile(std::string path) : path_(std::move(path)) { changed(); }
  const std::string& path() const noexcept { return path_; }
  // Whether the stamp differs from the last one, which it replaces. A missing file counts as unchanged.
  bool changed() noexcept;

 private:
  std::string path_;
  FileStamp stamp_;
};

}  // namespace sconce::server
