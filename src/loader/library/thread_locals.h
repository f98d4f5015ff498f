// Thread-local objects of models: their memory and their destructors.
//
// Every call of a torch 2.13+ model makes one (its error text). glibc would keep the library mapped until each thread
// that called it has ended; here the library's owner destroys them when it unloads the library. And glibc ends the
// process where it finds no memory for them, whereas here a reserve is left.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sconce::loader {

// Takes the place of __cxa_thread_atexit in a model, and in libsconce. `library` is an address inside it (its
// __dso_handle). Destructors of a thread that ends run on that thread, last registered first. Without memory the object
// is not destroyed.
int add_thread_local(void (*destroy)(void*), void* object, void* library) noexcept;

// The thread-local memory of a loaded library: what it begins with, and its number with the dynamic linker.
struct ThreadImage {
  uint64_t module = 0;
  const std::byte* bytes = nullptr;
  size_t filled = 0, size = 0, alignment = 1;  // zeros behind what is filled
};
// Before find_thread_local() may be asked for it. The image's memory is the library's.
void add_thread_image(const ThreadImage& image);

// What compiled code hands to __tls_get_addr, whose place this takes in a model.
struct ThreadLocalIndex {
  uint64_t module, offset;
};
void* find_thread_local(ThreadLocalIndex* index) noexcept;

// Destroys what threads still have of the library mapped at [begin, end), and forgets its image. No thread may be
// inside the library.
void destroy_thread_locals(uintptr_t begin, uintptr_t end) noexcept;

}  // namespace sconce::loader
