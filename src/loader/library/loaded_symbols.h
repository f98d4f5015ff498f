// LoadedSymbols: the symbols that one loaded library defines, read from its own tables. It finds the symbols that
// dlsym would find in this library, without dlsym's locks and errors. dlsym may find more, because it also searches
// the library's dependencies.
//
// Valid as long as the library stays loaded. Immutable.
#pragma once

#include <elf.h>

#include <cstdint>
#include <string_view>

namespace sconce::loader {

class LoadedSymbols {
 public:
  static constexpr uint16_t kNoVersion = 0;  // a number that no version has

  LoadedSymbols() = default;  // has no symbols
  // `handle` comes from dlopen; null: no symbols.
  explicit LoadedSymbols(void* handle) noexcept;

  // The number of a version that the library defines, or kNoVersion.
  uint16_t version(std::string_view name) const noexcept;
  // Whether the library defines the symbol in that version; for kNoVersion, whether it defines it and has no versions.
  // `hash` is gnu_hash(name).
  bool defines(std::string_view name, uint32_t hash, uint16_t version) const noexcept;

 private:
  const char* strings_ = nullptr;
  const Elf64_Sym* symbols_ = nullptr;
  const uint32_t* hash_table_ = nullptr;
  const Elf64_Half* symbol_versions_ = nullptr;
  const char* defined_versions_ = nullptr;
  uint64_t defined_version_count_ = 0;
};

}  // namespace sconce::loader
