// The address of tensors without elements: memory that reads as zeros and cannot be written.
//
// Compiled code may read beyond such a tensor. torch.export does not record whether a size may be 0, and leaves out
// the check of x[0] where it assumed a size of 2 or more. Such code must not read the data of another request.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace sconce {

// The start of 1 GiB, or of 64 KiB if the address space is limited. All tensors share it.
inline void* empty_memory() noexcept {
  alignas(4096) static const std::byte zeros[size_t{64} << 10]{};
  static void* const memory = [] {
    // Pages that are only read take no memory.
    void* const mapped =
        ::mmap(nullptr, size_t{1} << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return mapped == MAP_FAILED ? const_cast<std::byte*>(zeros) : mapped;
  }();
  return memory;
}

}  // namespace sconce
