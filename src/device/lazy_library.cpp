#include "src/device/lazy_library.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <span>
#include <string>
#include <vector>

#include "sconce/check.h"
#include "sconce/mutex.h"

namespace sconce {

namespace {

// Loading a library reads its relocations and runs all its constructors, sometimes tens of megabytes that are never
// read again. This frees those pages; unmodified pages are read again when touched.
void drop_read_pages(void* handle) noexcept {
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_TEXTREL || (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL))) return;
  const auto drop = [](dl_phdr_info* info, size_t, void* base) {
    if (info->dlpi_addr != *static_cast<const ElfW(Addr)*>(base)) return 0;
    const auto page = static_cast<ElfW(Addr)>(::sysconf(_SC_PAGESIZE));
    for (const ElfW(Phdr) & part : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
      if (part.p_type != PT_LOAD || (part.p_flags & PF_W) != 0) continue;
      const ElfW(Addr) begin = (info->dlpi_addr + part.p_vaddr) / page * page,
                       end = (info->dlpi_addr + part.p_vaddr + part.p_filesz) / page * page;
      if (end > begin + (1 << 20)) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }
    return 1;
  };
  ::dl_iterate_phdr(drop, &map->l_addr);
}

// Opens the library; returns the reason of a failure, or "".
std::string open(LazyLibrary& library) {
  static Mutex opening;
  const MutexLock lock(opening);
  if (library.open.load(std::memory_order_relaxed)) return {};
  const std::string install = std::string("install the package ") + library.package;
  void* handle = dlopen(library.soname, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = dlerror();
    return std::string(library.name) + " is needed but cannot be opened: " + install + " (" +
           (reason ? reason : library.soname) + ")";
  }
  // Resolves all functions or none: an entry point never sees a half-resolved table.
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
  drop_read_pages(handle);
  library.open.store(true, std::memory_order_release);
  return {};
}

}  // namespace

void open_library(LazyLibrary& library) {
  const std::string reason = open(library);
  SCONCE_CHECK(reason.empty(), kUnavailable, reason);
}

void keep_open(const char* soname) noexcept {
  if (void* handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL)) drop_read_pages(handle);
}

bool try_open_library(LazyLibrary& library) { return open(library).empty(); }

}  // namespace sconce

// Called by the generated entry points; index is the function's.
extern "C" void* sconce_lazy_resolve(sconce::LazyLibrary* library, size_t index) {
  sconce::require_library(*library);
  return library->targets[index];
}
