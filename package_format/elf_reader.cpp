#include "package_format/elf_reader.h"

#include <algorithm>
#include <cstring>

#include "sconce/check.h"

namespace sconce {
namespace {

template <class T>
T load(std::span<const std::byte> bytes, uint64_t offset) noexcept {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

#define SCONCE_SOUND(condition, ...) \
  SCONCE_CHECK(condition, kCorruptPackage, "model library is damaged: ", member_, ": ", __VA_ARGS__)

ElfReader::ElfReader(std::span<const std::byte> file, std::string member) : file_(file), member_(std::move(member)) {
  SCONCE_SOUND(file.size() >= sizeof(Elf64_Ehdr) && std::memcmp(file.data(), ELFMAG, SELFMAG) == 0, "no ELF header");
  const auto header = load<Elf64_Ehdr>(file, 0);
  SCONCE_CHECK(
      header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_type == ET_DYN,
      kIncompatible, "model library is not a 64-bit little-endian shared object: ", member_);
  machine_ = header.e_machine;
  SCONCE_SOUND(header.e_phentsize == sizeof(Elf64_Phdr) && header.e_phoff <= file.size() &&
                   header.e_phnum <= (file.size() - header.e_phoff) / sizeof(Elf64_Phdr),
               "program headers lie outside the file");
  segments_.resize(header.e_phnum);
  if (header.e_phnum != 0)
    std::memcpy(segments_.data(), file.data() + header.e_phoff, segments_.size() * sizeof(Elf64_Phdr));
  for (const Elf64_Phdr& segment : segments_)
    SCONCE_SOUND(segment.p_offset <= file.size() && segment.p_filesz <= file.size() - segment.p_offset,
                 "a segment lies outside the file");
  if (header.e_shentsize == sizeof(Elf64_Shdr) && header.e_shoff <= file.size() &&
      header.e_shnum <= (file.size() - header.e_shoff) / sizeof(Elf64_Shdr)) {
    sections_offset_ = header.e_shoff;
    section_count_ = header.e_shnum;
  }
  read_dynamic();
}

const Elf64_Phdr* ElfReader::segment(uint64_t address, uint64_t size) const noexcept {
  for (const Elf64_Phdr& segment : segments_)
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr <= segment.p_filesz &&
        size <= segment.p_filesz - (address - segment.p_vaddr))
      return &segment;
  return nullptr;
}

std::span<const std::byte> ElfReader::at(uint64_t address, uint64_t size) const noexcept {
  const Elf64_Phdr* found = segment(address, size);
  return found ? file_.subspan(found->p_offset + (address - found->p_vaddr), size) : std::span<const std::byte>();
}

bool ElfReader::writable(uint64_t address) const noexcept {
  for (uint64_t i = 0; i < section_count_; ++i) {
    const auto section = load<Elf64_Shdr>(file_, sections_offset_ + i * sizeof(Elf64_Shdr));
    const bool per_thread = (section.sh_flags & SHF_TLS) != 0;  // has no address of its own
    if ((section.sh_flags & SHF_ALLOC) == 0 || per_thread) continue;
    if (address >= section.sh_addr && address - section.sh_addr < section.sh_size)
      return (section.sh_flags & SHF_WRITE) != 0;
  }
  const Elf64_Phdr* found = segment(address, 0);
  return found && (found->p_flags & PF_W) != 0;
}

void ElfReader::read_dynamic() {
  const auto dynamic = std::find_if(segments_.begin(), segments_.end(),
                                    [](const Elf64_Phdr& segment) { return segment.p_type == PT_DYNAMIC; });
  SCONCE_SOUND(dynamic != segments_.end(), "no dynamic section");
  uint64_t strings = 0, string_bytes = 0, symbols = 0, gnu_hash = 0, hash = 0;
  for (uint64_t i = 0; i < dynamic->p_filesz / sizeof(Elf64_Dyn); ++i) {
    const auto entry = load<Elf64_Dyn>(file_, dynamic->p_offset + i * sizeof(Elf64_Dyn));
    if (entry.d_tag == DT_NULL) break;
    switch (entry.d_tag) {
      case DT_NEEDED:
        needed_.push_back(entry.d_un.d_val);
        break;
      case DT_STRTAB:
        strings = entry.d_un.d_ptr;
        break;
      case DT_STRSZ:
        string_bytes = entry.d_un.d_val;
        break;
      case DT_SYMTAB:
        symbols = entry.d_un.d_ptr;
        break;
      case DT_GNU_HASH:
        gnu_hash = entry.d_un.d_ptr;
        break;
      case DT_HASH:
        hash = entry.d_un.d_ptr;
        break;
      default:
        break;
    }
  }
  const std::span<const std::byte> bytes = at(strings, string_bytes);
  SCONCE_SOUND(!bytes.empty() && bytes.back() == std::byte{0}, "no string table");
  strings_ = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  const Elf64_Phdr* table = segment(symbols, 0);
  SCONCE_SOUND(table != nullptr, "no symbol table");
  symbols_ = at(symbols, table->p_filesz - (symbols - table->p_vaddr));
  read_hash(gnu_hash, hash);
  SCONCE_SOUND(symbol_count_ <= symbols_.size() / sizeof(Elf64_Sym), "symbol table lies outside the file");
}

// The tables do not say how many symbols there are; the hash tables do.
void ElfReader::read_hash(uint64_t gnu_hash, uint64_t hash) {
  if (hash != 0) {
    const auto header = at(hash, 8);
    SCONCE_SOUND(!header.empty(), "hash table lies outside the file");
    symbol_count_ = load<uint32_t>(header, 4);
    first_hashed_ = symbol_count_;
  }
  if (gnu_hash == 0) {
    SCONCE_SOUND(hash != 0, "no hash table");
    return;
  }
  const auto header = at(gnu_hash, 16);
  SCONCE_SOUND(!header.empty(), "hash table lies outside the file");
  const uint64_t buckets = load<uint32_t>(header, 0);
  first_hashed_ = load<uint32_t>(header, 4);
  const uint64_t bloom_words = load<uint32_t>(header, 8);
  const uint64_t bucket_at = gnu_hash + 16 + 8 * bloom_words;
  const auto bucket_bytes = at(bucket_at, 4 * buckets);
  SCONCE_SOUND(buckets == 0 || !bucket_bytes.empty(), "hash table lies outside the file");
  uint64_t last = 0;
  for (uint64_t i = 0; i < buckets; ++i) last = std::max<uint64_t>(last, load<uint32_t>(bucket_bytes, 4 * i));
  if (last < first_hashed_) {
    symbol_count_ = std::max(symbol_count_, first_hashed_);
    return;
  }
  // The last chain ends with an odd value.
  const uint64_t chains = bucket_at + 4 * buckets;
  for (;; ++last) {
    const auto value = at(chains + 4 * (last - first_hashed_), 4);
    SCONCE_SOUND(!value.empty(), "hash table does not end");
    if (load<uint32_t>(value, 0) & 1) break;
  }
  symbol_count_ = std::max(symbol_count_, last + 1);
}

std::string_view ElfReader::string(uint64_t offset) const {
  SCONCE_SOUND(offset < strings_.size(), "a name lies outside the string table");
  return strings_.data() + offset;
}

Elf64_Sym ElfReader::symbol(uint64_t index) const { return load<Elf64_Sym>(symbols_, index * sizeof(Elf64_Sym)); }

std::vector<std::string> ElfReader::imports() const {
  std::vector<std::string> names;
  for (uint64_t i = 1; i < std::min(first_hashed_, symbol_count_); ++i) {
    const Elf64_Sym candidate = symbol(i);
    if (candidate.st_shndx == SHN_UNDEF && ELF64_ST_BIND(candidate.st_info) == STB_GLOBAL)
      names.emplace_back(string(candidate.st_name));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string> ElfReader::needed() const {
  std::vector<std::string> names;
  for (const uint64_t offset : needed_) names.emplace_back(string(offset));
  return names;
}

std::optional<Elf64_Sym> ElfReader::find(std::string_view name) const {
  for (uint64_t i = 1; i < symbol_count_; ++i) {
    const Elf64_Sym candidate = symbol(i);
    if (candidate.st_shndx != SHN_UNDEF && candidate.st_name < strings_.size() &&
        strings_.substr(candidate.st_name).starts_with(name) && string(candidate.st_name) == name)
      return candidate;
  }
  return std::nullopt;
}

std::vector<std::string_view> ElfReader::exports(std::string_view prefix) const {
  std::vector<std::string_view> names;
  for (uint64_t i = 1; i < symbol_count_; ++i) {
    const Elf64_Sym candidate = symbol(i);
    if (candidate.st_shndx != SHN_UNDEF && candidate.st_name < strings_.size() &&
        strings_.substr(candidate.st_name).starts_with(prefix))
      names.push_back(string(candidate.st_name));
  }
  return names;
}

}  // namespace sconce
