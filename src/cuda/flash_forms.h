// The forms in which flash_kernel exists, for host and device code.
#pragma once

#include <cstddef>

namespace sconce::cuda {

// Elements a head that a kernel has room for.
constexpr int flash_dim(int d, int dv) {
  const int widest = d > dv ? d : dv;
  return widest <= 64 ? 64 : widest <= 128 ? 128 : 256;
}
// Keys a tile.
constexpr int flash_keys(size_t itemsize, int dim) {
  if (itemsize == 4) return dim == 256 ? 16 : 32;
  return dim == 256 ? 32 : 64;
}
constexpr int flash_shared_bytes(size_t itemsize, int dim, int tiles) {
  return (64 * tiles + 4 * flash_keys(itemsize, dim)) * (dim * static_cast<int>(itemsize) + 16);
}
// At most so many queries can be those of every warp.
constexpr int kFlashFew = 16;
constexpr int flash_few_shared_bytes(size_t itemsize, int dim) {
  return (kFlashFew + 4 * flash_keys(itemsize, dim)) * (dim * static_cast<int>(itemsize) + 16);
}

}  // namespace sconce::cuda
