// Reads the operators from the library's own table of exported symbols, so that the list is exactly what packages can
// link to.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>

#include "sconce/check.h"
#include "sconce/runnable.h"
#include "src/loader/library/own_library.h"

namespace sconce {
namespace {

// DT_GNU_HASH: the header, a bloom filter, buckets with the first symbol of each chain, chains whose ends have bit 0.
uint32_t count_symbols(const uint32_t* hash) {
  const uint32_t bucket_count = hash[0], first_symbol = hash[1], bloom_words = hash[2];
  const uint32_t* buckets = hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
  const uint32_t* chains = buckets + bucket_count;
  uint32_t last = 0;
  for (uint32_t i = 0; i < bucket_count; ++i) last = std::max(last, buckets[i]);
  if (last < first_symbol) return first_symbol;
  while ((chains[last - first_symbol] & 1) == 0) ++last;
  return last + 1;
}

}  // namespace

std::vector<std::string> implemented_operators() {
  link_map* map = nullptr;
  SCONCE_CHECK(dlinfo(loader::own_library().handle, RTLD_DI_LINKMAP, &map) == 0, kInternal,
               "libsconce cannot read its own symbols");
  const ElfW(Sym)* symbols = nullptr;
  const char* strings = nullptr;
  const uint32_t* hash = nullptr;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    const auto* address = reinterpret_cast<const void*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_SYMTAB) symbols = static_cast<const ElfW(Sym)*>(address);
    if (entry->d_tag == DT_STRTAB) strings = static_cast<const char*>(address);
    if (entry->d_tag == DT_GNU_HASH) hash = static_cast<const uint32_t*>(address);
  }
  SCONCE_CHECK(symbols && strings && hash, kInternal, "libsconce cannot read its own symbols");
  std::vector<std::string> names;
  for (uint32_t i = 0, count = count_symbols(hash); i < count; ++i) {
    const char* name = strings + symbols[i].st_name;
    if (symbols[i].st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC &&
        (std::strncmp(name, "aoti_torch_cpu_", 15) == 0 || std::strncmp(name, "aoti_torch_cuda_", 16) == 0))
      names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace sconce
