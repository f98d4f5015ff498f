#include "src/loader/library/own_library.h"

#include <dlfcn.h>
#include <link.h>

#include "sconce/check.h"

namespace sconce::loader {
namespace {

void* open_again(const std::string& path, int extra_flags) {
  void* handle = dlopen(path.empty() ? nullptr : path.c_str(), RTLD_NOW | RTLD_NOLOAD | extra_flags);
  if (handle) return handle;
  const char* reason = dlerror();
  SCONCE_FAIL(kInternal, "libsconce cannot find itself among the loaded libraries: ", path, ": ",
              reason ? reason : "not loaded");
}

}  // namespace

const OwnLibrary& own_library() {
  static const OwnLibrary own = [] {
    Dl_info info;
    void* map = nullptr;
    SCONCE_CHECK(dladdr1(reinterpret_cast<const void*>(&own_library), &info, &map, RTLD_DL_LINKMAP) && map, kInternal,
                 "libsconce cannot find itself among the loaded libraries");
    std::string path = static_cast<const link_map*>(map)->l_name;
    void* handle = open_again(path, RTLD_LOCAL);
    return OwnLibrary{handle, std::move(path)};
  }();
  return own;
}

void make_own_library_global() {
  static const bool done = open_again(own_library().path, RTLD_GLOBAL) != nullptr;
  (void)done;
}

}  // namespace sconce::loader
