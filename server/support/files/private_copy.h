// PrivateCopy: the bytes of a file in memory that nobody can change any more, neither by the file nor by the copy.
// Immutable, so thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "server/support/files/descriptor.h"

namespace sconce::server {

class PrivateCopy {
 public:
  // Reads the file once, from start to end. kIo (no regular file, cannot be read), kOutOfMemory. most: bytes that it
  // may have at most, else kTooLarge.
  explicit PrivateCopy(const std::filesystem::path& file, uint64_t most = UINT64_MAX);
  PrivateCopy(const PrivateCopy&) = delete;
  PrivateCopy& operator=(const PrivateCopy&) = delete;
  ~PrivateCopy();

  // At a multiple of a page.
  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(data_), size_}; }
  // A name by which this process opens the copy, while this object lives.
  std::filesystem::path path() const;

 private:
  Descriptor memory_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace sconce::server
