// ContentStamp: what tells one content of an open file from the next without reading it.
//
// The system notes a time before the first byte of a write or of a truncation, so a stamp that is still the same after
// bytes were read says that they were those of the stamp. It does not for who writes through a mapping that was there
// before, or sets times back and renames the file besides.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sconce {

class ContentStamp {
 public:
  ContentStamp() = default;  // the same as no other
  // Of the file now, once the clock that files are stamped with has passed its last change: what is written from then
  // on has another stamp. Waits for some milliseconds at most, where the file was written just now.
  static ContentStamp settled(int fd) noexcept;
  static ContentStamp now(int fd) noexcept;  // without that

  bool is_known() const noexcept { return known_; }  // else the system did not say, and errno why
  uint64_t size() const noexcept { return size_; }
  // Whether the file has it still: neither size nor time of modification differ, and there is a reason for it where the
  // inode changed all the same (a rename, a link, new rights), which is taken over. errno is set where the
  // system did not say.
  bool still_of(int fd) noexcept;

 private:
  static ContentStamp of(int fd) noexcept;

  bool known_ = false;
  uint64_t device_ = 0, inode_ = 0, size_ = 0, links_ = 0;
  uint32_t mode_ = 0, user_ = 0, group_ = 0;
  int64_t modified_ns_ = 0, changed_ns_ = 0;
  size_t name_ = 0;  // a hash of where it lies
};

}  // namespace sconce
