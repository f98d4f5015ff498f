// Replaces the C library's allocator and the forms of operator new in libraries; each can be made to fail. The
// program's operator new is malloc.
#include <cerrno>
#include <cstdlib>
#include <new>

#include "tests/faults/interposer/control.h"
#include "tests/faults/interposer/original.h"

namespace {

using sconce::faults::Control;
using sconce::faults::Kind;

bool refused() noexcept {
  Control* const shared = sconce::faults::control();
  if (shared == nullptr || !fails(*shared, Kind::kAllocation, -1)) return false;
  errno = ENOMEM;
  return true;
}

SCONCE_ORIGINAL(posix_memalign, int(void**, size_t, size_t))

}  // namespace

#define ALLOCATOR(name, parameters, arguments) \
  namespace {                                  \
  SCONCE_ORIGINAL(name, void* parameters)      \
  }                                            \
  extern "C" void* name parameters noexcept { return refused() ? nullptr : real_##name.find() arguments; }

ALLOCATOR(malloc, (size_t size), (size))
ALLOCATOR(calloc, (size_t number, size_t size), (number, size))
ALLOCATOR(realloc, (void* memory, size_t size), (memory, size))
ALLOCATOR(reallocarray, (void* memory, size_t number, size_t size), (memory, number, size))
ALLOCATOR(aligned_alloc, (size_t alignment, size_t size), (alignment, size))
ALLOCATOR(memalign, (size_t alignment, size_t size), (alignment, size))
ALLOCATOR(valloc, (size_t size), (size))
ALLOCATOR(mi_malloc, (size_t size), (size))
ALLOCATOR(mi_malloc_aligned, (size_t size, size_t alignment), (size, alignment))

extern "C" int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  return refused() ? ENOMEM : real_posix_memalign.find()(memory, alignment, size);
}

void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return std::malloc(size == 0 ? 1 : size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return std::malloc(size == 0 ? 1 : size); }
