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
void store_unaligned(void* to, E value) noexcept {
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

// n packed copies of one element. E: 1, 2, 4, 8 or 16 bytes.
template <class E>
void fill_run(void* to, E value, int64_t n) noexcept {
  using Pattern [[gnu::vector_size(32)]] = char;
  constexpr int64_t kItem = sizeof(E), kAtOnce = 32 / kItem;
  char* out = static_cast<char*>(to);
  if (n < kAtOnce) {
    for (int64_t i = 0; i < n; ++i) store_unaligned(out + i * kItem, value);
    return;
  }
  char items[32];
  for (int64_t i = 0; i < kAtOnce; ++i) store_unaligned(items + i * kItem, value);
  const auto pattern = load_unaligned<Pattern>(items);
  const int64_t bytes = n * kItem;
  for (int64_t at = 0; at + 32 <= bytes; at += 32) store_unaligned(out + at, pattern);
  store_unaligned(out + bytes - 32, pattern);  // overlaps the one before: 32 is a multiple of the item
}

}  // namespace sconce
