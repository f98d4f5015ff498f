// Elements that are only moved: a type of the same size for each.
#pragma once

#include <vector_types.h>

#include <cstdint>

namespace sconce::cuda {

struct alignas(8) Bytes16 {
  uint64_t low, high;
};

// Calls f with a value of a type of that many bytes: 1, 2, 4, 8 or 16.
template <class F>
void by_size(int itemsize, F&& f) {
  switch (itemsize) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
    default:
      return f(Bytes16{});
  }
}

// The same, 16 bytes at once where they are aligned to as many.
template <class F>
void by_width(int itemsize, bool aligned, F&& f) {
  if (itemsize == 16 && aligned)
    f(uint4{});
  else
    by_size(itemsize, f);
}

}  // namespace sconce::cuda
