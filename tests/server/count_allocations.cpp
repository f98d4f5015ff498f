// Preloaded into the server by test_allocations.py: counts the allocations of all threads in the file COUNT_FILE, as
// one 64-bit number.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

std::atomic<uint64_t>* counter() noexcept {
  static std::atomic<uint64_t>* const shared = []() -> std::atomic<uint64_t>* {
    const char* const path = std::getenv("COUNT_FILE");
    const int file = path ? ::open(path, O_RDWR) : -1;
    if (file < 0) return nullptr;
    void* const memory = ::mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    return memory == MAP_FAILED ? nullptr : static_cast<std::atomic<uint64_t>*>(memory);
  }();
  return shared;
}

void count() noexcept {
  if (std::atomic<uint64_t>* const c = counter()) c->fetch_add(1, std::memory_order_relaxed);
}

template <class Function>
Function next(const char* name) noexcept {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

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
