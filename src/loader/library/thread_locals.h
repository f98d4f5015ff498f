// Thread-local objects of models: their memory and their destructors.
//
// Every call of a model of torch 2.13 or later makes one (its error text). glibc would keep the library mapped until
// every thread that called it has ended; here, unloading the library destroys the objects. glibc would also end the
// process if it had no memory for them; here, memory is reserved.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sconce::loader {

// Replaces __cxa_thread_atexit in models and in libsconce. `library` is an address inside the object's library (its
// __dso_handle). When a thread ends, its destructors run, last registered first. If no memory is left for a record,
// the object is not destroyed.
int add_thread_local(void (*destroy)(void*), void* object, void* library) noexcept;

// The thread-local memory of a loaded library: its initial content, and its module number.
struct ThreadImage {
  uint64_t module = 0;
  const std::byte* bytes = nullptr;
  size_t filled = 0, size = 0, alignment = 1;  // zeros follow the first `filled` bytes
};
// Call this before find_thread_local() may need it. The image's memory belongs to the library.
void add_thread_image(const ThreadImage& image);

// The argument of compiled code to __tls_get_addr, which find_thread_local() replaces in a model.
struct ThreadLocalIndex {
  uint64_t module, offset;
};
void* find_thread_local(ThreadLocalIndex* index) noexcept;

// Destroys all threads' objects of the library mapped at [begin, end) and forgets its image. No thread may be inside
// the library.
void destroy_thread_locals(uintptr_t begin, uintptr_t end) noexcept;

}  // namespace sconce::loader
