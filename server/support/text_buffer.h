// TextBuffer: a growing text, reused for each request. Used only by its owner's thread.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

namespace sconce::server {

class TextBuffer {
 public:
  TextBuffer() = default;
  TextBuffer(const TextBuffer&) = delete;
  TextBuffer& operator=(const TextBuffer&) = delete;
  ~TextBuffer() { std::free(data_); }

  char* data() noexcept { return data_; }
  const char* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  size_t capacity() const noexcept { return capacity_; }
  std::string_view view() const noexcept { return {data_, size_}; }
  void clear() noexcept { size_ = 0; }
  void truncate(size_t size) noexcept { size_ = size; }
  void release() noexcept {
    std::free(data_);
    data_ = nullptr;
    size_ = capacity_ = 0;
  }

  // Makes room for `bytes` more bytes; commit() sets the end of the written ones. std::bad_alloc.
  char* reserve(size_t bytes) {
    if (bytes > capacity_ - size_) [[unlikely]]
      grow(bytes);
    return data_ + size_;
  }
  void commit(const char* end) noexcept { size_ = static_cast<size_t>(end - data_); }

  void append(std::string_view text) {
    char* out = reserve(text.size());
    if (!text.empty()) std::memcpy(out, text.data(), text.size());
    size_ += text.size();
  }
  void append(char c) {
    *reserve(1) = c;
    ++size_;
  }

 private:
  [[gnu::noinline]] void grow(size_t bytes) {
    if (bytes > static_cast<size_t>(PTRDIFF_MAX) - size_) throw std::bad_alloc();
    size_t capacity = capacity_ * 2 < 1024 ? 1024 : capacity_ * 2;
    if (capacity < size_ + bytes) capacity = size_ + bytes;
    char* data = static_cast<char*>(std::realloc(data_, capacity));
    if (data == nullptr) throw std::bad_alloc();
    data_ = data;
    capacity_ = capacity;
  }

  char* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace sconce::server
