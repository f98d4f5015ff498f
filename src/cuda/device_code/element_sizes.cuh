// For elements that are only moved: one type per element size.
#pragma once

#include <vector_types.h>

#include <cstdint>

namespace sconce::cuda {

struct alignas(8) Bytes16 {
  uint64_t low, high;
};

// Calls f with an unsigned integer of that size: 1, 2, 4 or 8 bytes.
template <class F>
void by_word(int itemsize, F&& f) {
  switch (itemsize) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

// The same for elements of up to 16 bytes.
template <class F>
void by_size(int itemsize, F&& f) {
  if (itemsize == 16)
    f(Bytes16{});
  else
    by_word(itemsize, f);
}

// The same, but with one 16-byte access if the address is aligned to 16.
template <class F>
void by_width(int itemsize, bool aligned, F&& f) {
  if (itemsize == 16 && aligned)
    f(uint4{});
  else
    by_size(itemsize, f);
}

}  // namespace sconce::cuda
