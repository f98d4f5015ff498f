// LoadedSymbols: what one library in this process defines, read from the library's own tables. Says no less than dlsym
// would find in that very library, without its locks and errors; what it does not find may still be found by dlsym,
// which asks the libraries behind it too.
//
// Valid as long as the library stays loaded. Immutable.
#pragma once

#include <elf.h>

#include <cstdint>
#include <string_view>

namespace sconce::loader {

class LoadedSymbols {
 public:
  static constexpr uint16_t kNoVersion = 0;  // what no version has

  LoadedSymbols() = default;  // of nothing
  // `handle` is what dlopen returned; null: of nothing.
  explicit LoadedSymbols(void* handle) noexcept;

  // The number of a version that the library defines, kNoVersion if it does not.
  uint16_t version(std::string_view name) const noexcept;
  // True if the library defines the symbol in that version; for kNoVersion, if it defines it and has no versions.
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
