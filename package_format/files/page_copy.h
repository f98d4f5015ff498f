// PageCopy: private copies of pages that another process may change. Each page is copied once, so checks of a copy stay
// valid. Not thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "package_format/files/byte_range.h"

namespace sconce {

class PageCopy {
 public:
  // Borrows `source`. Reserves addresses for all of it, but no memory yet. kOutOfMemory.
  explicit PageCopy(std::span<const std::byte> source);
  ~PageCopy();
  PageCopy(const PageCopy&) = delete;
  PageCopy& operator=(const PageCopy&) = delete;

  // Copies the pages of a range that were not copied before.
  void take(ByteRange range) noexcept;
  // The copies, at the offsets of the source; zeros elsewhere.
  std::span<const std::byte> bytes() const noexcept { return {data_, source_.size()}; }

 private:
  const std::span<const std::byte> source_;
  std::vector<bool> taken_;  // per page
  std::byte* data_ = nullptr;
};

}  // namespace sconce
