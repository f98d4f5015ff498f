// Where the elements of tensors without elements are: memory that reads as zeros and that nobody can write.
//
// Compiled code may read behind such a tensor. torch.export does not record whether a size may be 0, and leaves out the
// check of x[0] where it took the size for 2 or more. What such code reads must not be another request's.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace sconce {

// The first of 1 GiB, or of 64 KiB where the address space is limited. The same for all tensors.
inline void* empty_memory() noexcept {
  alignas(4096) static const std::byte zeros[size_t{64} << 10]{};
  static void* const memory = [] {
    // Pages that are only read have no memory of their own.
    void* const mapped =
        ::mmap(nullptr, size_t{1} << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return mapped == MAP_FAILED ? const_cast<std::byte*>(zeros) : mapped;
  }();
  return memory;
}

}  // namespace sconce
