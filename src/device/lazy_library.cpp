#include "src/device/lazy_library.h"

#include <dlfcn.h>

#include <mutex>
#include <string>
#include <vector>

#include "sconce/check.h"

namespace sconce {

namespace {

// Why the library is not open; empty: it is.
std::string open(LazyLibrary& library) {
  static std::mutex opening;
  const std::lock_guard lock(opening);
  if (library.open.load(std::memory_order_relaxed)) return {};
  const std::string install = std::string("install the package ") + library.package;
  void* handle = dlopen(library.soname, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = dlerror();
    return std::string(library.name) + " is needed but cannot be opened: " + install + " (" +
           (reason ? reason : library.soname) + ")";
  }
  // All or nothing: an entry point never sees a half-resolved table.
  std::vector<void*> found(library.count);
  for (size_t i = 0; i < library.count; ++i) {
    found[i] = dlsym(handle, library.functions[i]);
    if (!found[i]) {
      const std::string function = library.functions[i];
      dlclose(handle);
      return std::string(library.name) + ": " + library.soname + " has no function " + function + ": " + install +
             " in the version Sconce was built for";
    }
  }
  for (size_t i = 0; i < library.count; ++i) __atomic_store_n(&library.targets[i], found[i], __ATOMIC_RELAXED);
  library.open.store(true, std::memory_order_release);
  return {};
}

}  // namespace

void open_library(LazyLibrary& library) {
  const std::string reason = open(library);
  SCONCE_CHECK(reason.empty(), kUnavailable, reason);
}

bool try_open_library(LazyLibrary& library) { return open(library).empty(); }

}  // namespace sconce

// Called by the generated entry points, index being that of the function.
extern "C" void* sconce_lazy_resolve(sconce::LazyLibrary* library, size_t index) {
  sconce::require_library(*library);
  return library->targets[index];
}
