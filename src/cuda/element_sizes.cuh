// Elements that are only moved: a type of the same size for each.
#pragma once

#include <cstdint>

namespace sconce::cuda {

struct alignas(8) Bytes16 {
  uint64_t low, high;
};

// Calls f with a value of a type of that many bytes: 1, 2, 4, 8 or 16.
template <class F>
void by_size(int itemsize, F&& f) {
  switch (itemsize) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    case 8: return f(uint64_t{});
    default: return f(Bytes16{});
  }
}

}  // namespace sconce::cuda
