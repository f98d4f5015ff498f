#include "tests/runner/counted_memory.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <new>

namespace sconce::test {
namespace {

// Trivial, so that it is valid before the thread's constructors and after its destructors.
thread_local Counts counted;
thread_local int64_t until_failure = 0;  // 0: none

thread_local bool none = false;

bool due() noexcept { return none || (until_failure > 0 && --until_failure == 0); }

template <class Function>
Function* next(Function*& found, const char* name) noexcept {
  if (!found) found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  return found;
}

void* allocate(size_t size, size_t alignment) noexcept {
  ++counted.allocations;
  if (due()) return nullptr;
  if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return std::malloc(size ? size : 1);
  void* memory = nullptr;
  return posix_memalign(&memory, alignment, size ? size : 1) == 0 ? memory : nullptr;
}

void* allocate_or_throw(size_t size, size_t alignment) {
  void* memory = allocate(size, alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}

constexpr size_t kDefault = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace

Counts counts() noexcept { return counted; }
FailingMemory::FailingMemory(int64_t nth) noexcept { until_failure = nth; }
FailingMemory::~FailingMemory() { until_failure = 0; }
NoMemory::NoMemory() noexcept { none = true; }
NoMemory::~NoMemory() { none = false; }
bool FailingMemory::failed() const noexcept { return until_failure == 0; }

}  // namespace sconce::test

using namespace sconce::test;

void* operator new(size_t n) { return allocate_or_throw(n, kDefault); }
void* operator new[](size_t n) { return allocate_or_throw(n, kDefault); }
void* operator new(size_t n, std::align_val_t a) { return allocate_or_throw(n, static_cast<size_t>(a)); }
void* operator new[](size_t n, std::align_val_t a) { return allocate_or_throw(n, static_cast<size_t>(a)); }
void* operator new(size_t n, const std::nothrow_t&) noexcept { return allocate(n, kDefault); }
void* operator new[](size_t n, const std::nothrow_t&) noexcept { return allocate(n, kDefault); }
void* operator new(size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, static_cast<size_t>(a));
}
void* operator new[](size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, static_cast<size_t>(a));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }

extern "C" {

void* aligned_alloc(size_t alignment, size_t size) noexcept {
  static void* (*real)(size_t, size_t) = nullptr;
  ++counted.allocations;
  if (due()) {
    errno = ENOMEM;
    return nullptr;
  }
  return next(real, "aligned_alloc")(alignment, size);
}

void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  static void* (*real)(void*, size_t, int, int, int, off_t) = nullptr;
  ++counted.mappings;
  if ((flags & MAP_ANONYMOUS) != 0 && due()) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return next(real, "mmap")(address, size, protection, flags, fd, offset);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static int (*real)(pthread_mutex_t*) = nullptr;
  ++counted.locks;
  return next(real, "pthread_mutex_lock")(mutex);
}

}  // extern "C"
