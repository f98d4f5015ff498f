// Destructors of a model's thread-local objects. Every call of a torch 2.13+ model makes one (its error text); glibc
// would keep the library mapped until each thread that called it has ended. Here the library's owner destroys them
// when it unloads the library.
#pragma once

#include <cstdint>

namespace sconce::loader {

// Takes the place of __cxa_thread_atexit in a model. `library` is an address inside it (its __dso_handle). Destructors
// of a thread that ends run on that thread, last registered first.
int add_thread_local(void (*destroy)(void*), void* object, void* library) noexcept;

// Destroys what threads still have of the library mapped at [begin, end). No thread may be inside the library.
void destroy_thread_locals(uintptr_t begin, uintptr_t end) noexcept;

}  // namespace sconce::loader
