// Preloaded into the server by test_allocations.py: counts the allocations of all threads in the file COUNT_FILE, as
// one 64-bit number.
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "tests/server/shared_counter.h"

#define COUNTED(name, parameters, arguments)                  \
  extern "C" void* name parameters noexcept {                 \
    static auto const real = next<void*(*)parameters>(#name); \
    count();                                                  \
    return real arguments;                                    \
  }

COUNTED(malloc, (size_t size), (size))
COUNTED(calloc, (size_t number, size_t size), (number, size))
COUNTED(realloc, (void* memory, size_t size), (memory, size))
COUNTED(aligned_alloc, (size_t alignment, size_t size), (alignment, size))

extern "C" int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  static const auto real = next<int (*)(void**, size_t, size_t)>("posix_memalign");
  count();
  return real(memory, alignment, size);
}
