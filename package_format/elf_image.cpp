#include "package_format/elf_image.h"

#include <algorithm>
#include <cstring>

#include "sconce/check.h"

namespace sconce {
namespace {

constexpr uint64_t kMaxSegments = 256;
constexpr uint16_t kVersionIndexMask = 0x7fff;  // the top bit marks a hidden version

}  // namespace

template <class T>
T ElfImage::read(uint64_t offset) const noexcept {
  T value;
  std::memcpy(&value, table_bytes().data() + offset, sizeof(T));
  return value;
}

ElfImage::ElfImage(std::span<const std::byte> bytes, std::string_view name)
    : bytes_(bytes), pages_(bytes), name_(name) {
  read_header();
  read_segments();
  read_dynamic();
  check_symbols();
  check_relocations();
}

void ElfImage::check_range(uint64_t offset, uint64_t size, const char* what) const {
  SCONCE_CHECK(offset <= bytes_.size() && size <= bytes_.size() - offset, kCorruptPackage, "shared object: ", what,
               " lies outside the file: ", name_, ": offset ", offset, ", size ", size, ", file has ", bytes_.size());
}

ByteRange ElfImage::table(uint64_t address, uint64_t size, const char* what) {
  const ByteRange range{offset_of(address, size, what), size};
  pages_.take(range);
  tables_.push_back(range);
  return range;
}

void ElfImage::read_header() {
  SCONCE_CHECK(bytes_.size() >= sizeof(Elf64_Ehdr), kCorruptPackage,
               "shared object: the file is shorter than an ELF header: ", name_, ": ", bytes_.size(), " bytes");
  pages_.take({0, sizeof(Elf64_Ehdr)});
  header_ = read<Elf64_Ehdr>(0);
  SCONCE_CHECK(std::memcmp(header_.e_ident, ELFMAG, SELFMAG) == 0, kCorruptPackage,
               "shared object: the file is no ELF file: ", name_);
  SCONCE_CHECK(header_.e_ident[EI_CLASS] == ELFCLASS64 && header_.e_ident[EI_DATA] == ELFDATA2LSB, kIncompatible,
               "shared object: the file is not 64-bit little-endian: ", name_);
  SCONCE_CHECK(header_.e_type == ET_DYN, kIncompatible, "shared object: the file is no shared object: ", name_,
               ": ELF type ", header_.e_type);
  SCONCE_CHECK(header_.e_phentsize == sizeof(Elf64_Phdr) && header_.e_phnum <= kMaxSegments, kCorruptPackage,
               "shared object: bad program header table: ", name_, ": ", header_.e_phnum, " entries of ",
               header_.e_phentsize, " bytes");
  check_range(header_.e_phoff, header_.e_phnum * sizeof(Elf64_Phdr), "program header table");
  tables_.push_back({0, sizeof(Elf64_Ehdr)});
  tables_.push_back({header_.e_phoff, header_.e_phnum * sizeof(Elf64_Phdr)});
  pages_.take(tables_.back());
  pages_.take(section_headers());
}

void ElfImage::read_segments() {
  uint64_t end_of_previous = 0;
  for (size_t i = 0; i < header_.e_phnum; ++i) {
    const auto segment = read<Elf64_Phdr>(header_.e_phoff + i * sizeof(Elf64_Phdr));
    segments_.push_back(segment);
    if (segment.p_type != PT_LOAD) continue;
    check_range(segment.p_offset, segment.p_filesz, "segment");
    // glibc reserves addresses from the table's first segment to its last, so segments must be in order.
    SCONCE_CHECK(segment.p_filesz <= segment.p_memsz && segment.p_vaddr >= end_of_previous &&
                     segment.p_memsz <= INT64_MAX - std::min<uint64_t>(segment.p_vaddr, INT64_MAX),
                 kCorruptPackage, "shared object: segments overlap or are out of order: ", name_, ": segment ", i);
    end_of_previous = segment.p_vaddr + segment.p_memsz;
  }
  SCONCE_CHECK(end_of_previous > 0, kCorruptPackage, "shared object: the file has nothing to map: ", name_);
}

const Elf64_Phdr* ElfImage::segment_of(uint64_t address, uint64_t size) const noexcept {
  for (const Elf64_Phdr& segment : segments_)
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr <= segment.p_filesz &&
        size <= segment.p_filesz - (address - segment.p_vaddr))
      return &segment;
  return nullptr;
}

uint64_t ElfImage::offset_of(uint64_t address, uint64_t size, const char* what) const {
  if (const Elf64_Phdr* segment = segment_of(address, size)) return segment->p_offset + (address - segment->p_vaddr);
  SCONCE_FAIL(kCorruptPackage, "shared object: ", what, " lies outside the mapped file: ", name_, ": address ", address,
              ", size ", size);
}

std::span<const std::byte> ElfImage::bytes_at(uint64_t address, uint64_t size) const noexcept {
  const Elf64_Phdr* segment = segment_of(address, size);
  return segment ? bytes_.subspan(segment->p_offset + (address - segment->p_vaddr), size)
                 : std::span<const std::byte>();
}

ByteRange ElfImage::section_headers() const noexcept {
  const uint64_t size = bytes_.size();
  if (header_.e_shentsize != sizeof(Elf64_Shdr) || header_.e_shoff > size ||
      header_.e_shnum > (size - header_.e_shoff) / sizeof(Elf64_Shdr))
    return {};
  return {header_.e_shoff, header_.e_shnum * sizeof(Elf64_Shdr)};
}

bool ElfImage::writable(uint64_t address) const noexcept {
  const size_t count = section_headers().size / sizeof(Elf64_Shdr);
  for (size_t i = 0; i < count; ++i) {
    const auto section = read<Elf64_Shdr>(header_.e_shoff + i * sizeof(Elf64_Shdr));
    const bool per_thread = (section.sh_flags & SHF_TLS) != 0;  // has no address of its own
    if ((section.sh_flags & SHF_ALLOC) == 0 || per_thread) continue;
    if (address >= section.sh_addr && address - section.sh_addr < section.sh_size)
      return (section.sh_flags & SHF_WRITE) != 0;
  }
  const Elf64_Phdr* segment = segment_of(address, 0);
  return segment && (segment->p_flags & PF_W) != 0;
}

uint64_t ElfImage::first_address() const noexcept {
  for (const Elf64_Phdr& segment : segments_)
    if (segment.p_type == PT_LOAD) return segment.p_vaddr;
  return 0;
}

uint64_t ElfImage::last_address() const noexcept {
  uint64_t last = 0;
  for (const Elf64_Phdr& segment : segments_)
    if (segment.p_type == PT_LOAD) last = segment.p_vaddr + segment.p_memsz;
  return last;
}

void ElfImage::read_dynamic() {
  const auto found =
      std::find_if(segments_.begin(), segments_.end(), [](const Elf64_Phdr& s) { return s.p_type == PT_DYNAMIC; });
  SCONCE_CHECK(found != segments_.end(), kCorruptPackage, "shared object: the file has no dynamic section: ", name_);
  dynamic_offset_ = table(found->p_vaddr, found->p_filesz, "dynamic section").offset;
  const size_t entries = found->p_filesz / sizeof(Elf64_Dyn);
  bool ended = false;
  for (size_t i = 0; i < entries; ++i) {
    const auto entry = read<Elf64_Dyn>(dynamic_offset_ + i * sizeof(Elf64_Dyn));
    if (entry.d_tag != DT_NULL && ended) break;
    if (entry.d_tag != DT_NULL) {
      dynamic_.push_back(entry);
    } else if (ended) {
      ++spare_dynamic_;
    } else {
      ended = true;
    }
  }
  SCONCE_CHECK(ended, kCorruptPackage, "shared object: the dynamic section has no end: ", name_);

  // If a tag occurs twice, the last entry counts, as in the dynamic linker.
  const auto value = [&](int64_t tag) {
    uint64_t result = 0;
    for (const Elf64_Dyn& entry : dynamic_)
      if (entry.d_tag == tag) result = entry.d_un.d_val;
    return result;
  };
  SCONCE_CHECK(value(DT_STRTAB) && value(DT_STRSZ) && value(DT_SYMTAB), kCorruptPackage,
               "shared object: the dynamic section names no symbol or string table: ", name_);
  SCONCE_CHECK(!value(DT_REL) && (value(DT_PLTREL) == DT_RELA || !value(DT_JMPREL)), kIncompatible,
               "shared object: relocations without addends, which x86-64 does not have: ", name_);
  strings_ = table(value(DT_STRTAB), value(DT_STRSZ), "string table");
  SCONCE_CHECK(table_bytes()[strings_.end() - 1] == std::byte{0}, kCorruptPackage,
               "shared object: the string table does not end with a zero: ", name_);
  read_symbol_count(value(DT_GNU_HASH), value(DT_HASH));
  symbols_offset_ = table(value(DT_SYMTAB), symbol_count_ * sizeof(Elf64_Sym), "symbol table").offset;
  if (value(DT_VERSYM))
    symbol_versions_offset_ =
        table(value(DT_VERSYM), symbol_count_ * sizeof(Elf64_Versym), "symbol version table").offset;
  know_version(VER_NDX_LOCAL);
  know_version(VER_NDX_GLOBAL);
  if (value(DT_VERNEED)) read_needed_versions(value(DT_VERNEED), value(DT_VERNEEDNUM));
  if (value(DT_VERDEF)) read_defined_versions(value(DT_VERDEF), value(DT_VERDEFNUM));
  if (value(DT_RELA)) relocations_ = table(value(DT_RELA), value(DT_RELASZ), "relocation table");
  if (value(DT_INIT_ARRAY)) table(value(DT_INIT_ARRAY), value(DT_INIT_ARRAYSZ), "table of initialisers");
  if (value(DT_JMPREL)) plt_relocations_ = table(value(DT_JMPREL), value(DT_PLTRELSZ), "PLT relocation table");
  SCONCE_CHECK(relocations_.size % sizeof(Elf64_Rela) == 0 && plt_relocations_.size % sizeof(Elf64_Rela) == 0,
               kCorruptPackage, "shared object: a relocation table ends within an entry: ", name_);
  for (size_t i = 0; i < dynamic_.size(); ++i)
    if (dynamic_[i].d_tag == DT_NEEDED)
      needed_.push_back(
          {i, dynamic_[i].d_un.d_val, checked_string(dynamic_[i].d_un.d_val, "name of a needed library")});
}

// No table records the number of symbols: .hash has one chain entry per symbol, .gnu.hash ends with the last symbol's.
void ElfImage::read_symbol_count(uint64_t gnu_hash, uint64_t hash) {
  SCONCE_CHECK(gnu_hash || hash, kCorruptPackage, "shared object: the file has no symbol hash table: ", name_);
  if (gnu_hash) read_gnu_hash(gnu_hash);
  if (hash) {
    const ByteRange head = table(hash, 2 * sizeof(uint32_t), "symbol hash table");
    const uint64_t buckets = read<uint32_t>(head.offset), chains = read<uint32_t>(head.offset + 4);
    table(hash, (2 + buckets + chains) * sizeof(uint32_t), "symbol hash table");
    SCONCE_CHECK(symbol_count_ <= chains, kCorruptPackage, "shared object: the symbol hash tables differ: ", name_,
                 ": ", symbol_count_, " and ", chains, " symbols");
    symbol_count_ = chains;
  }
  SCONCE_CHECK(symbol_count_ > 0, kCorruptPackage, "shared object: the symbol table is empty: ", name_);
}

void ElfImage::read_gnu_hash(uint64_t address) {
  constexpr const char* kWhat = "GNU symbol hash table";
  const ByteRange head = table(address, 4 * sizeof(uint32_t), kWhat);
  const uint64_t bucket_count = read<uint32_t>(head.offset);
  const uint64_t bloom_words = read<uint32_t>(head.offset + 8);
  first_hashed_ = read<uint32_t>(head.offset + 4);
  // The dynamic linker ends the process unless this is a power of two.
  SCONCE_CHECK(bloom_words != 0 && (bloom_words & (bloom_words - 1)) == 0, kCorruptPackage,
               "shared object: bad GNU symbol hash table: ", name_, ": ", bloom_words, " words of filter");
  const uint64_t buckets_address = address + 16 + bloom_words * 8;
  table(address, 16 + bloom_words * 8, kWhat);
  buckets_ = table(buckets_address, bucket_count * sizeof(uint32_t), kWhat);
  uint64_t last = 0;
  for (uint64_t at = buckets_.offset; at != buckets_.end(); at += sizeof(uint32_t)) {
    const auto first = read<uint32_t>(at);
    SCONCE_CHECK(first == 0 || first >= first_hashed_, kCorruptPackage,
                 "shared object: bad GNU symbol hash table: ", name_, ": a bucket begins at symbol ", first);
    last = std::max<uint64_t>(last, first);
  }
  symbol_count_ = first_hashed_;
  if (last == 0) return;
  has_gnu_hash_ = true;
  const uint64_t chains_address = buckets_address + buckets_.size;
  const auto chain = [&](uint64_t symbol) {
    const uint64_t at = chains_address + (symbol - first_hashed_) * sizeof(uint32_t);
    const ByteRange entry{offset_of(at, sizeof(uint32_t), kWhat), sizeof(uint32_t)};
    pages_.take(entry);
    return read<uint32_t>(entry.offset);
  };
  while (!(chain(last) & 1)) ++last;
  symbol_count_ = last + 1;
  chains_offset_ = table(chains_address, (symbol_count_ - first_hashed_) * sizeof(uint32_t), kWhat).offset;
}

void ElfImage::read_needed_versions(uint64_t address, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    const ByteRange at = table(address, sizeof(Elf64_Verneed), "needed versions");
    const auto library = read<Elf64_Verneed>(at.offset);
    const std::string_view library_name = checked_string(library.vn_file, "library name of a version");
    uint64_t aux_address = address + library.vn_aux;
    for (uint64_t j = 0; j < library.vn_cnt; ++j) {
      const ByteRange aux_at = table(aux_address, sizeof(Elf64_Vernaux), "needed versions");
      const auto aux = read<Elf64_Vernaux>(aux_at.offset);
      const auto index = static_cast<uint16_t>(aux.vna_other & kVersionIndexMask);
      versions_.push_back({at.offset, aux_at.offset, index, library_name, checked_string(aux.vna_name, "version name"),
                           (aux.vna_flags & VER_FLG_WEAK) != 0});
      know_version(index);
      if (aux.vna_next == 0) break;
      aux_address += aux.vna_next;
    }
    if (library.vn_next == 0) break;
    address += library.vn_next;
  }
}

void ElfImage::know_version(uint16_t index) {
  if (index >= known_versions_.size()) known_versions_.resize(index + 1u);
  known_versions_[index] = true;
}

void ElfImage::read_defined_versions(uint64_t address, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    const auto entry = read<Elf64_Verdef>(table(address, sizeof(Elf64_Verdef), "defined versions").offset);
    know_version(entry.vd_ndx & kVersionIndexMask);
    if (entry.vd_next == 0) break;
    address += entry.vd_next;
  }
}

std::string_view ElfImage::checked_string(uint64_t offset, const char* what) const {
  SCONCE_CHECK(offset < strings_.size, kCorruptPackage, "shared object: ", what,
               " lies outside the string table: ", name_, ": offset ", offset, ", table has ", strings_.size);
  return string(offset);
}

std::string_view ElfImage::string(uint64_t offset) const noexcept {
  return reinterpret_cast<const char*>(table_bytes().data() + strings_.offset + offset);
}

void ElfImage::check_symbols() const {
  for (size_t i = 0; i < symbol_count_; ++i) {
    const uint32_t name = symbol(i).st_name;
    SCONCE_CHECK(name < strings_.size, kCorruptPackage,
                 "shared object: a symbol's name lies outside the string table: ", name_, ": symbol ", i);
    const uint16_t version = symbol_version(i);
    SCONCE_CHECK(version < known_versions_.size() && known_versions_[version], kCorruptPackage,
                 "shared object: a symbol has a version that the file does not name: ", name_, ": symbol ", i);
  }
}

void ElfImage::check_relocations() const {
  const auto writable = [&](const Elf64_Rela& entry) {
    for (const Elf64_Phdr& segment : segments_)
      if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) && entry.r_offset >= segment.p_vaddr &&
          segment.p_memsz >= sizeof(uint64_t) && entry.r_offset - segment.p_vaddr <= segment.p_memsz - sizeof(uint64_t))
        return true;
    return false;
  };
  for (size_t i = 0, count = relocation_count(); i < count; ++i) {
    const Elf64_Rela entry = relocation(i);
    SCONCE_CHECK(ELF64_R_SYM(entry.r_info) < symbol_count_, kCorruptPackage,
                 "shared object: a relocation names a symbol that does not exist: ", name_, ": relocation ", i);
    SCONCE_CHECK(ELF64_R_TYPE(entry.r_info) == R_X86_64_NONE || writable(entry), kCorruptPackage,
                 "shared object: a relocation points outside the writable data: ", name_, ": relocation ", i);
  }
}

Elf64_Sym ElfImage::symbol(size_t index) const noexcept {
  return read<Elf64_Sym>(symbols_offset_ + index * sizeof(Elf64_Sym));
}

std::string_view ElfImage::symbol_name(size_t index) const noexcept { return string(symbol(index).st_name); }

uint16_t ElfImage::symbol_version(size_t index) const noexcept {
  if (!symbol_versions_offset_) return VER_NDX_GLOBAL;
  return read<uint16_t>(symbol_versions_offset_ + index * sizeof(Elf64_Versym)) & kVersionIndexMask;
}

bool ElfImage::is_named(size_t index, std::string_view name) const noexcept {
  const uint64_t at = symbol(index).st_name;
  return name.size() < strings_.size - at && std::memcmp(string(at).data(), name.data(), name.size()) == 0 &&
         table_bytes()[strings_.offset + at + name.size()] == std::byte{0};
}

size_t ElfImage::find_hashed(std::string_view name) const noexcept {
  const uint64_t bucket_count = buckets_.size / sizeof(uint32_t);
  if (bucket_count == 0) return 0;
  const uint32_t hash = gnu_hash(name);
  size_t i = read<uint32_t>(buckets_.offset + hash % bucket_count * sizeof(uint32_t));
  if (i == 0) return 0;
  for (; i < symbol_count_; ++i) {
    const auto chain = read<uint32_t>(chains_offset_ + (i - first_hashed_) * sizeof(uint32_t));
    if ((chain | 1) == (hash | 1) && is_named(i, name)) return i;
    if (chain & 1) break;
  }
  return 0;
}

size_t ElfImage::find_symbol(std::string_view name) const noexcept {
  if (has_gnu_hash_)
    if (const size_t found = find_hashed(name)) return found;
  for (size_t i = 1, end = has_gnu_hash_ ? std::min(first_hashed_, symbol_count_) : symbol_count_; i < end; ++i)
    if (is_named(i, name)) return i;
  return 0;
}

std::optional<Elf64_Sym> ElfImage::exported(std::string_view name) const noexcept {
  const size_t index = has_gnu_hash_ ? find_hashed(name) : find_symbol(name);
  if (index == 0 || symbol(index).st_shndx == SHN_UNDEF) return std::nullopt;
  return symbol(index);
}

std::vector<std::string> ElfImage::imports() const {
  std::vector<std::string_view> names;
  for (size_t i = 1, end = has_gnu_hash_ ? std::min(first_hashed_, symbol_count_) : symbol_count_; i < end; ++i) {
    const Elf64_Sym candidate = symbol(i);
    if (candidate.st_shndx == SHN_UNDEF && ELF64_ST_BIND(candidate.st_info) == STB_GLOBAL)
      names.push_back(string(candidate.st_name));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return {names.begin(), names.end()};
}

Elf64_Rela ElfImage::relocation(size_t index) const noexcept {
  const uint64_t offset = index * sizeof(Elf64_Rela);
  return read<Elf64_Rela>(offset < relocations_.size ? relocations_.offset + offset
                                                     : plt_relocations_.offset + (offset - relocations_.size));
}

std::vector<ByteRange> ElfImage::unmapped_sections() const {
  const ByteRange headers = section_headers();
  const auto needed = [&](const ByteRange& range) {
    return std::any_of(tables_.begin(), tables_.end(), [&](const ByteRange& t) { return range.overlaps(t); }) ||
           std::any_of(segments_.begin(), segments_.end(), [&](const Elf64_Phdr& s) {
             return s.p_type == PT_LOAD && range.overlaps({s.p_offset, s.p_filesz});
           });
  };
  std::vector<ByteRange> found{{header_.e_shoff, headers.size}};
  for (size_t i = 0; i < headers.size / sizeof(Elf64_Shdr); ++i) {
    const auto section = read<Elf64_Shdr>(header_.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type == SHT_NULL || section.sh_type == SHT_NOBITS || (section.sh_flags & SHF_ALLOC)) continue;
    const ByteRange range{section.sh_offset, section.sh_size};
    if (range.offset > bytes_.size() || range.size > bytes_.size() - range.offset) return {};
    found.push_back(range);
  }
  if (found.size() == 1 || std::any_of(found.begin(), found.end(), needed)) return {};
  std::sort(found.begin(), found.end(), [](const ByteRange& a, const ByteRange& b) { return a.offset < b.offset; });
  constexpr uint64_t kMaxPadding = 64;
  std::vector<ByteRange> result;
  for (const ByteRange& range : found) {
    const bool padded =
        !result.empty() && range.offset <= result.back().end() + kMaxPadding &&
        (range.offset <= result.back().end() || !needed({result.back().end(), range.offset - result.back().end()}));
    if (padded)
      result.back().size = std::max(result.back().end(), range.end()) - result.back().offset;
    else
      result.push_back(range);
  }
  return result;
}

}  // namespace sconce
