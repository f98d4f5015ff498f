// ElfImage: the tables of a model's .so. Every returned table lies inside the file, and every name ends inside the
// string table. It checks the values that the dynamic linker uses unchecked. x86-64 and aarch64.
//
// Borrows the bytes, which another process may change at any time. So it copies the tables, checks the copies and
// returns only these; they live as long as the object. Immutable. Format: System V gABI, the x86-64 psABI and glibc's
// <elf.h>.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "package_format/files/byte_range.h"
#include "package_format/files/page_copy.h"

namespace sconce {

constexpr uint32_t gnu_hash(std::string_view name) noexcept {
  uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

class ElfImage {
 public:
  // kIncompatible if it is not a 64-bit little-endian shared object; kCorruptPackage if it contradicts itself or is
  // truncated. `name` is for messages.
  ElfImage(std::span<const std::byte> bytes, std::string_view name);

  struct Needed {
    size_t dynamic_index;   // of the entry in dynamic()
    uint64_t name_offset;   // in the string table
    std::string_view name;  // "libc.so.6"
  };
  // A library's version that some symbols require.
  struct NeededVersion {
    uint64_t library_offset, aux_offset;  // of the Elf64_Verneed and Elf64_Vernaux in the file
    uint16_t index;                       // the result of symbol_version()
    std::string_view library, name;       // "libc.so.6", "GLIBC_2.34"
    bool weak;
  };

  const std::string& name() const noexcept { return name_; }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  // The checked copies of tables(), at their offsets in the file.
  std::span<const std::byte> table_bytes() const noexcept { return pages_.bytes(); }
  uint16_t machine() const noexcept { return header_.e_machine; }  // EM_X86_64, EM_AARCH64
  std::span<const Elf64_Phdr> segments() const noexcept { return segments_; }
  std::span<const Elf64_Dyn> dynamic() const noexcept { return dynamic_; }  // up to, but without, DT_NULL
  // The number of further DT_NULL entries after the terminator of dynamic().
  size_t spare_dynamic() const noexcept { return spare_dynamic_; }
  uint64_t dynamic_offset() const noexcept { return dynamic_offset_; }  // in the file
  std::span<const Needed> needed() const noexcept { return needed_; }
  std::span<const NeededVersion> needed_versions() const noexcept { return versions_; }

  // Symbols of .dynsym; index 0 is the null symbol.
  size_t symbol_count() const noexcept { return symbol_count_; }
  uint64_t symbols_offset() const noexcept { return symbols_offset_; }
  Elf64_Sym symbol(size_t index) const noexcept;
  std::string_view symbol_name(size_t index) const noexcept;
  uint16_t symbol_version(size_t index) const noexcept;      // VER_NDX_*, without the hidden bit
  size_t find_symbol(std::string_view name) const noexcept;  // 0 if absent
  // The symbol, if the file defines it.
  std::optional<Elf64_Sym> exported(std::string_view name) const noexcept;
  // Undefined global symbols, sorted. Weak ones are left out, as they may stay undefined.
  std::vector<std::string> imports() const;

  ByteRange strings() const noexcept { return strings_; }
  std::string_view string(uint64_t offset) const noexcept;  // offset < strings().size

  // Relocations, the PLT's last. r_offset is an address in the image.
  size_t relocation_count() const noexcept { return (relocations_.size + plt_relocations_.size) / sizeof(Elf64_Rela); }
  Elf64_Rela relocation(size_t index) const noexcept;
  ByteRange relocations() const noexcept { return relocations_; }  // in the file; without the PLT's
  ByteRange plt_relocations() const noexcept { return plt_relocations_; }

  // The addresses [first, last) of the mapped segments, relative to the load address.
  uint64_t first_address() const noexcept;
  uint64_t last_address() const noexcept;
  // File offset of `size` bytes at an address. kCorruptPackage if no segment holds them all.
  uint64_t offset_of(uint64_t address, uint64_t size, const char* what) const;
  // The bytes at an address; empty if no segment holds them all.
  std::span<const std::byte> bytes_at(uint64_t address, uint64_t size) const noexcept;
  // Whether the section at this address is writable; without section headers, its segment. (A linker may put a
  // read-only section into the same segment as preceding writable ones.)
  bool writable(uint64_t address) const noexcept;

  // The tables that this class and the dynamic linker read.
  std::span<const ByteRange> tables() const noexcept { return tables_; }
  // Sections that are not mapped (debug information, symbol table), and their headers: unused at run time. In order of
  // offsets, with the padding between them. Empty if the headers are missing or invalid.
  std::vector<ByteRange> unmapped_sections() const;

 private:
  template <class T>
  T read(uint64_t offset) const noexcept;  // the caller knows that these pages were copied
  void check_range(uint64_t offset, uint64_t size, const char* what) const;
  ByteRange table(uint64_t address, uint64_t size, const char* what);
  std::string_view checked_string(uint64_t offset, const char* what) const;
  void read_header();
  void read_segments();
  void read_dynamic();
  const Elf64_Phdr* segment_of(uint64_t address, uint64_t size) const noexcept;
  ByteRange section_headers() const noexcept;  // empty if they are missing or invalid
  bool is_named(size_t index, std::string_view name) const noexcept;
  size_t find_hashed(std::string_view name) const noexcept;
  void read_symbol_count(uint64_t gnu_hash, uint64_t hash);
  void read_gnu_hash(uint64_t address);
  void read_needed_versions(uint64_t address, uint64_t count);
  void read_defined_versions(uint64_t address, uint64_t count);
  void know_version(uint16_t index);
  void check_symbols() const;
  void check_relocations() const;

  std::span<const std::byte> bytes_;
  PageCopy pages_;
  std::string name_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Dyn> dynamic_;
  size_t spare_dynamic_ = 0;
  uint64_t dynamic_offset_ = 0;
  std::vector<Needed> needed_;
  std::vector<NeededVersion> versions_;
  ByteRange strings_{}, relocations_{}, plt_relocations_{};
  uint64_t symbols_offset_ = 0, symbol_versions_offset_ = 0;  // the latter is 0 if symbols have no versions
  size_t symbol_count_ = 0;
  // The symbols of DT_GNU_HASH start at first_hashed_: all that the file exports.
  ByteRange buckets_{};
  uint64_t chains_offset_ = 0;
  size_t first_hashed_ = 0;
  bool has_gnu_hash_ = false;
  std::vector<bool> known_versions_;  // by index
  std::vector<ByteRange> tables_;
};

}  // namespace sconce
