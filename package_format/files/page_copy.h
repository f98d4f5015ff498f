// PageCopy: private copies of some pages of bytes that another process may change. Each page is copied once, so what
// was checked in a copy stays true. Not thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "package_format/files/byte_range.h"

namespace sconce {

class PageCopy {
 public:
  // Borrows `source`. Reserves addresses for all of it, and memory for nothing yet. kOutOfMemory.
  explicit PageCopy(std::span<const std::byte> source);
  ~PageCopy();
  PageCopy(const PageCopy&) = delete;
  PageCopy& operator=(const PageCopy&) = delete;

  // Copies the pages of a range inside the source, as far as they have not been yet.
  void take(ByteRange range) noexcept;
  // What was taken, at the offsets of the source; zeros elsewhere.
  std::span<const std::byte> bytes() const noexcept { return {data_, source_.size()}; }

 private:
  const std::span<const std::byte> source_;
  std::vector<bool> taken_;  // by page
  std::byte* data_ = nullptr;
};

}  // namespace sconce
