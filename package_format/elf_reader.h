// What a model's .so says about itself: symbols, libraries, segments. Reads what the dynamic linker would read (program
// headers and the dynamic section), never the section headers, which may be stripped. x86-64 and aarch64, little
// endian.
//
// Bounds-checked: no content of the file makes it read outside. Immutable; views into the caller's bytes.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sconce {

class ElfReader {
 public:
  // kCorruptPackage names the member; kIncompatible where it is no 64-bit little-endian shared object.
  ElfReader(std::span<const std::byte> file, std::string member);

  uint16_t machine() const noexcept { return machine_; }  // EM_X86_64, EM_AARCH64
  std::span<const Elf64_Phdr> segments() const noexcept { return segments_; }
  // Undefined global symbols, sorted. Weak ones are left out: nobody has to define them.
  std::vector<std::string> imports() const;
  std::vector<std::string> needed() const;  // DT_NEEDED, in order
  // A defined symbol. nullopt if there is none of that name.
  std::optional<Elf64_Sym> find(std::string_view name) const;
  // Names of defined symbols that start with the prefix.
  std::vector<std::string_view> exports(std::string_view prefix) const;
  // The bytes of the file that are mapped at [address, address + size); empty if they are not all in one segment.
  std::span<const std::byte> at(uint64_t address, uint64_t size) const noexcept;
  // True if the section at this address is writable; without section headers, if its segment is. (A linker may put a
  // read-only section into the segment of writable ones that come before it.)
  bool writable(uint64_t address) const noexcept;

 private:
  const Elf64_Phdr* segment(uint64_t address, uint64_t size) const noexcept;
  void read_dynamic();
  void read_hash(uint64_t gnu_hash, uint64_t hash);
  std::string_view string(uint64_t offset) const;
  Elf64_Sym symbol(uint64_t index) const;

  std::span<const std::byte> file_;
  std::string member_;
  uint16_t machine_ = 0;
  uint64_t sections_offset_ = 0;
  uint64_t section_count_ = 0;  // 0 where there are none, or none that make sense
  std::vector<Elf64_Phdr> segments_;
  std::vector<uint64_t> needed_;
  std::string_view strings_;
  std::span<const std::byte> symbols_;
  uint64_t symbol_count_ = 0;
  uint64_t first_hashed_ = 0;  // symbols below it are not in the hash table: the undefined ones
};

}  // namespace sconce
