#include "src/loader/library/loaded_symbols.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <string_view>

#include "package_format/elf_image.h"
#include "src/loader/library/own_library.h"

using namespace sconce;
using namespace sconce::loader;

TEST_CASE("loaded symbols: a library with versions") {
  void* handle = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  REQUIRE(handle);
  const LoadedSymbols libc(handle);
  const uint16_t version = libc.version("GLIBC_2.14"), first = libc.version("GLIBC_2.2.5");
  CHECK(version != LoadedSymbols::kNoVersion);
  CHECK(first != version);
  CHECK(libc.version("GLIBC_2.99") == LoadedSymbols::kNoVersion);
  CHECK(libc.version("GLIBC_2.1") == LoadedSymbols::kNoVersion);  // a prefix of other versions
  CHECK(libc.version("libc.so.6") == LoadedSymbols::kNoVersion);  // the library's own entry
  const auto defines = [&](std::string_view name, uint16_t v) { return libc.defines(name, gnu_hash(name), v); };
  CHECK(defines("memcpy", version));
  CHECK(defines("memcpy", first));  // an old version, which is not the default
  CHECK(!defines("memcpy", libc.version("GLIBC_2.34")));
  CHECK(!defines("memcpy", LoadedSymbols::kNoVersion));  // without a version, dlsym() chooses
  CHECK(!defines("no_such_function", first));
  CHECK(!defines("memcp", first));
  dlclose(handle);
}

TEST_CASE("loaded symbols: libsconce, which has no versions") {
  const LoadedSymbols own(own_library().handle);
  const auto defines = [&](std::string_view name) {
    return own.defines(name, gnu_hash(name), LoadedSymbols::kNoVersion);
  };
  CHECK(defines("aoti_torch_cpu_mm_out"));
  CHECK(defines("aoti_torch_get_dtype"));
  CHECK(!defines("aoti_torch_cpu_no_such_kernel"));
  CHECK(!defines("memcpy"));  // only imported
  CHECK(own.version("GLIBC_2.14") == LoadedSymbols::kNoVersion);
}

TEST_CASE("loaded symbols: of nothing") {
  CHECK(!LoadedSymbols(nullptr).defines("memcpy", gnu_hash("memcpy"), LoadedSymbols::kNoVersion));
  CHECK(LoadedSymbols().version("GLIBC_2.14") == LoadedSymbols::kNoVersion);
}
