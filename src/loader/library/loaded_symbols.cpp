#include "src/loader/library/loaded_symbols.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

namespace sconce::loader {
namespace {

constexpr uint16_t kVersionIndexMask = 0x7fff;  // the top bit marks a hidden version

bool equal(const char* text, std::string_view name) noexcept {
  return std::strncmp(text, name.data(), name.size()) == 0 && text[name.size()] == '\0';
}

}  // namespace

LoadedSymbols::LoadedSymbols(void* handle) noexcept {
  link_map* map = nullptr;
  if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map) return;
  // glibc makes most, but not all, addresses in a loaded library's dynamic section absolute.
  const auto at = [&](uint64_t address) {
    return reinterpret_cast<const char*>(address < map->l_addr ? map->l_addr + address : address);
  };
  for (const Elf64_Dyn* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) switch (entry->d_tag) {
      case DT_STRTAB:
        strings_ = at(entry->d_un.d_ptr);
        break;
      case DT_SYMTAB:
        symbols_ = reinterpret_cast<const Elf64_Sym*>(at(entry->d_un.d_ptr));
        break;
      case DT_GNU_HASH:
        hash_table_ = reinterpret_cast<const uint32_t*>(at(entry->d_un.d_ptr));
        break;
      case DT_VERSYM:
        symbol_versions_ = reinterpret_cast<const Elf64_Half*>(at(entry->d_un.d_ptr));
        break;
      case DT_VERDEF:
        defined_versions_ = at(entry->d_un.d_ptr);
        break;
      case DT_VERDEFNUM:
        defined_version_count_ = entry->d_un.d_val;
        break;
      default:
        break;
    }
  if (!strings_ || !symbols_) hash_table_ = nullptr;
  if (!defined_versions_) defined_version_count_ = 0;
}

uint16_t LoadedSymbols::version(std::string_view name) const noexcept {
  const char* at = defined_versions_;
  for (uint64_t i = 0; i < defined_version_count_; ++i) {
    const auto* entry = reinterpret_cast<const Elf64_Verdef*>(at);
    const auto* aux = reinterpret_cast<const Elf64_Verdaux*>(at + entry->vd_aux);
    if (!(entry->vd_flags & VER_FLG_BASE) && equal(strings_ + aux->vda_name, name)) return entry->vd_ndx;
    at += entry->vd_next;
  }
  return kNoVersion;
}

bool LoadedSymbols::defines(std::string_view name, uint32_t hash, uint16_t version) const noexcept {
  const bool versioned = defined_version_count_ != 0;
  if (!hash_table_ || hash_table_[0] == 0 || versioned != (version != kNoVersion)) return false;
  const uint32_t bucket_count = hash_table_[0], first_hashed = hash_table_[1], bloom_words = hash_table_[2];
  const uint32_t* const buckets = hash_table_ + 4 + 2 * uint64_t{bloom_words};
  const uint32_t* const chains = buckets + bucket_count;
  uint32_t i = buckets[hash % bucket_count];
  if (i == 0) return false;
  for (;; ++i) {
    const uint32_t chain = chains[i - first_hashed];
    const Elf64_Sym& symbol = symbols_[i];
    if ((chain | 1) == (hash | 1) && symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0 &&
        (!versioned || (symbol_versions_[i] & kVersionIndexMask) == version) && equal(strings_ + symbol.st_name, name))
      return true;
    if (chain & 1) return false;
  }
}

}  // namespace sconce::loader
