// Libraries that are opened on first use. Nothing is linked against them, so a model that does not need them does not
// load them. cmake/lazy_library.cmake generates an entry point for each function, so the library's own headers can be
// used.
//
//   SCONCE_LAZY_LIBRARY(oneDNN);                  // NAME given to sconce_lazy_library()
//   require_library(sconce_lazy_oneDNN);          // before the first use; kUnavailable names the Debian package
//
// Thread-safe. A library stays open. After that, require_library costs one load and a call one indirect jump. A call
// without require_library opens the library too, and throws from the call if that fails.
#pragma once

#include <atomic>
#include <cstddef>

namespace sconce {

// Its layout must match cmake/lazy_library.S.in.
struct LazyLibrary {
  const char* name;     // "oneDNN"
  const char* soname;   // "libdnnl.so.2", or a path
  const char* package;  // "libdnnl2"
  const char* const* functions;
  void** targets;  // jump targets of the entry points
  size_t count;
  std::atomic<bool> open;
};
static_assert(sizeof(LazyLibrary) == 56);

// kUnavailable if the library cannot be opened or lacks a function. The next call tries again.
void open_library(LazyLibrary& library);
// Returns false instead of throwing, for callers that have an alternative.
bool try_open_library(LazyLibrary& library);

// Opens a library that another one later opens by name. On failure nothing happens: the other library then reports the
// error itself.
void keep_open(const char* soname) noexcept;

inline void require_library(LazyLibrary& library) {
  if (!library.open.load(std::memory_order_acquire)) [[unlikely]]
    open_library(library);
}

}  // namespace sconce

#define SCONCE_LAZY_LIBRARY(name) extern "C" [[gnu::visibility("hidden")]] ::sconce::LazyLibrary sconce_lazy_##name
