// InputBuffer: unread bytes from a client, in a block of fixed size. The first room() allocates the block and close()
// frees it. Used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace sconce::server::http {

class InputBuffer {
 public:
  explicit InputBuffer(size_t capacity) noexcept : capacity_(capacity) {}

  size_t capacity() const noexcept { return capacity_; }
  bool is_open() const noexcept { return bytes_ != nullptr; }
  // Frees the block and drops unread bytes.
  void close() noexcept {
    clear();
    bytes_.reset();
  }

  bool empty() const noexcept { return begin_ == end_; }
  size_t size() const noexcept { return end_ - begin_; }
  std::string_view here() const noexcept { return {bytes_.get() + begin_, size()}; }
  void use(size_t bytes) noexcept { begin_ += bytes; }

  // Where to put the next bytes. Empty if only compact() or clear() can make room.
  std::span<char> room() {
    if (!bytes_) bytes_ = std::make_unique_for_overwrite<char[]>(capacity_);
    return {bytes_.get() + end_, capacity_ - end_};
  }
  bool full() const noexcept { return end_ == capacity_; }
  void add(size_t bytes) noexcept { end_ += bytes; }
  // The whole block, for bytes that are discarded. Call this only if is_open().
  std::span<char> all() noexcept { return {bytes_.get(), capacity_}; }

  // Marks the first unread byte for rewind().
  void mark() noexcept { mark_ = begin_; }
  std::string_view since_mark() const noexcept { return {bytes_.get() + mark_, begin_ - mark_}; }
  bool at_mark() const noexcept { return begin_ == mark_; }
  bool mark_in_front() const noexcept { return mark_ == 0; }
  void rewind() noexcept { begin_ = mark_; }

  // Moves the unread bytes and the mark to the front of the block. As for clear(), no read into room() may be in
  // progress.
  void compact() noexcept {
    std::memmove(bytes_.get(), bytes_.get() + begin_, size());
    end_ -= begin_;
    mark_ = begin_ = 0;
  }
  void clear() noexcept { mark_ = begin_ = end_ = 0; }

 private:
  std::unique_ptr<char[]> bytes_;
  const size_t capacity_;
  size_t begin_ = 0, end_ = 0;  // unread bytes are at [begin_, end_)
  size_t mark_ = 0;
};

}  // namespace sconce::server::http
