// PrivateCopy: the bytes of a file in memory that no process can change, neither through the file nor through the copy.
// Immutable and thread-safe.
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
  // Reads the file once, from start to end. kIo (not a regular file, unreadable), kOutOfMemory. most: maximum size,
  // else kTooLarge.
  explicit PrivateCopy(const std::filesystem::path& file, uint64_t most = UINT64_MAX);
  PrivateCopy(const PrivateCopy&) = delete;
  PrivateCopy& operator=(const PrivateCopy&) = delete;
  ~PrivateCopy();

  // Page-aligned.
  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(data_), size_}; }
  // A path under which this process can open the copy, while this object lives.
  std::filesystem::path path() const;

 private:
  Descriptor memory_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace sconce::server
