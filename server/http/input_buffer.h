// InputBuffer: bytes that came from a client and that nobody has used yet, in a block of fixed size. Confined to one
// thread at a time.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace sconce::server {

class InputBuffer {
 public:
  explicit InputBuffer(size_t capacity)
      : bytes_(std::make_unique_for_overwrite<char[]>(capacity)), capacity_(capacity) {}

  bool empty() const noexcept { return begin_ == end_; }
  size_t size() const noexcept { return end_ - begin_; }
  std::string_view here() const noexcept { return {bytes_.get() + begin_, size()}; }
  void use(size_t bytes) noexcept { begin_ += bytes; }

  // Where the next bytes go; empty: only compact() or clear() make room.
  std::span<char> room() noexcept { return {bytes_.get() + end_, capacity_ - end_}; }
  bool full() const noexcept { return end_ == capacity_; }
  void add(size_t bytes) noexcept { end_ += bytes; }
  // All of the block, for what nobody wants to see.
  std::span<char> all() noexcept { return {bytes_.get(), capacity_}; }

  // Marks the first unused byte; rewind() goes back to it.
  void mark() noexcept { mark_ = begin_; }
  bool at_mark() const noexcept { return begin_ == mark_; }
  bool mark_in_front() const noexcept { return mark_ == 0; }
  void rewind() noexcept { begin_ = mark_; }

  // Moves what is here to the front of the block, and the mark with it. Nobody may be reading into room() meanwhile,
  // which holds for clear() as well.
  void compact() noexcept {
    std::memmove(bytes_.get(), bytes_.get() + begin_, size());
    end_ -= begin_;
    mark_ = begin_ = 0;
  }
  void clear() noexcept { mark_ = begin_ = end_ = 0; }

 private:
  std::unique_ptr<char[]> bytes_;
  const size_t capacity_;
  size_t begin_ = 0, end_ = 0;  // what is here: [begin_, end_)
  size_t mark_ = 0;
};

}  // namespace sconce::server
