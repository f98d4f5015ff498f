// A range of bytes in a file.
#pragma once

#include <cstdint>

namespace sconce {

struct ByteRange {
  uint64_t offset, size;
  uint64_t end() const noexcept { return offset + size; }
  bool overlaps(const ByteRange& other) const noexcept { return offset < other.end() && other.offset < end(); }
};

}  // namespace sconce
