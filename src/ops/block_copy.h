// Copies of short runs of bytes without a call: rows of indexed tensors, of concatenations, of strided copies.
#pragma once

#include <cstdint>
#include <cstring>

namespace sconce {

template <class E>
E load_unaligned(const void* from) noexcept {
  E value;
  std::memcpy(&value, from, sizeof(E));
  return value;
}
template <class E>
void store_unaligned(void* to, const E& value) noexcept {
  std::memcpy(to, &value, sizeof(E));
}

namespace detail {

struct Word16 {
  uint64_t part[2];
};
struct Word32 {
  uint64_t part[4];
};

// Two overlapping moves of a power of two cover any short length without a loop.
template <class Word>
void copy_overlapping(const char* source, char* destination, int64_t bytes) noexcept {
  const Word first = load_unaligned<Word>(source), last = load_unaligned<Word>(source + bytes - sizeof(Word));
  store_unaligned(destination, first);
  store_unaligned(destination + bytes - sizeof(Word), last);
}

}  // namespace detail

// bytes >= 1; the runs do not overlap.
inline void copy_block(const char* source, char* destination, int64_t bytes) noexcept {
  if (bytes > 64)
    std::memcpy(destination, source, static_cast<size_t>(bytes));
  else if (bytes >= 32)
    detail::copy_overlapping<detail::Word32>(source, destination, bytes);
  else if (bytes >= 16)
    detail::copy_overlapping<detail::Word16>(source, destination, bytes);
  else if (bytes >= 8)
    detail::copy_overlapping<uint64_t>(source, destination, bytes);
  else if (bytes >= 4)
    detail::copy_overlapping<uint32_t>(source, destination, bytes);
  else if (bytes >= 2)
    detail::copy_overlapping<uint16_t>(source, destination, bytes);
  else
    *destination = *source;
}

}  // namespace sconce
