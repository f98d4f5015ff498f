// ContentStamp: identifies the content of an open file without reading it.
//
// The kernel records a time before the first byte of a write or truncation. So if the stamp is unchanged after
// reading, the bytes that were read belong to it. It misses two kinds of writers: one that writes through an older
// mapping, and one that resets the times and also renames the file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sconce {

class ContentStamp {
 public:
  ContentStamp() = default;  // differs from every stamp
  // The current stamp of the file, taken once the file clock has passed the last change, so that any later write gives
  // a different stamp. Waits some milliseconds if the file was written just now.
  static ContentStamp settled(int fd) noexcept;
  static ContentStamp now(int fd) noexcept;  // without waiting

  bool is_known() const noexcept { return known_; }  // false: the system reported an error, see errno
  uint64_t size() const noexcept { return size_; }
  // Whether the file still has this stamp: size and modification time are equal, and if the inode changed, a rename, a
  // link or new permissions explain it; the stamp then takes over the new inode state. errno is set if the system
  // reported an error.
  bool still_of(int fd) noexcept;

 private:
  static ContentStamp of(int fd) noexcept;

  bool known_ = false;
  uint64_t device_ = 0, inode_ = 0, size_ = 0, links_ = 0;
  uint32_t mode_ = 0, user_ = 0, group_ = 0;
  int64_t modified_ns_ = 0, changed_ns_ = 0;
  size_t name_ = 0;  // hash of its path
};

}  // namespace sconce
