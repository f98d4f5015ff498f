// The variants of flash_kernel and flash_few_kernel, for host and device code.
#pragma once

#include <cstddef>

namespace sconce::cuda {

// The elements per head that the kernel has room for.
constexpr int flash_dim(int d, int dv) {
  const int widest = d > dv ? d : dv;
  return widest <= 64 ? 64 : widest <= 128 ? 128 : 256;
}
// Keys per tile.
constexpr int flash_keys(size_t itemsize, int dim) {
  if (itemsize == 4) return dim == 256 ? 16 : 32;
  return dim == 256 ? 32 : 64;
}
constexpr int flash_shared_bytes(size_t itemsize, int dim, int tiles, bool biased = false) {
  const int keys = flash_keys(itemsize, dim), item = static_cast<int>(itemsize);
  return (64 * tiles + 4 * keys) * (dim * item + 16) + (biased ? 2 * 64 * tiles * (keys + 8) * item : 0);
}

// flash_few_kernel has room for 64 or 128 elements per head. Queries per block:
constexpr int flash_few_queries(int tiles) { return 8 * tiles; }
// Keys that a warp takes at once.
constexpr int flash_few_keys(int dim) { return 2048 / dim; }
// Blocks of 8 queries for which a multiprocessor has registers at once.
constexpr int kFlashFewBlocks = 3;

}  // namespace sconce::cuda
