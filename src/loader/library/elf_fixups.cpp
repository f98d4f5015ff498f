#include "src/loader/library/elf_fixups.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "sconce/check.h"
#include "src/device/device_backend.h"
#include "src/loader/library/uncalled.h"

namespace sconce::loader {
namespace {

// An unused tag in the range for operating systems, which the dynamic linker skips.
constexpr int64_t kIgnoredTag = 0x60005ce0;

class Patcher {
 public:
  Patcher(const ElfImage& image, const FixupOptions& options) : image_(image), options_(options) {}

  Fixups run() {
    clear_executable_stack();
    make_symbols_weak();
    bind_own_functions(image_.relocations());
    bind_own_functions(image_.plt_relocations());
    redirect_needed();
    postpone_initialisers();
    make_versions_weak();
    drop_unmapped_sections();
    merge_patches();
    return std::move(result_);
  }

 private:
  template <class T>
  void put(uint64_t offset, const T& value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    result_.patches.push_back({offset, {bytes, bytes + sizeof(T)}});
  }

  template <class T>
  T get(uint64_t offset) const {
    T value;
    std::memcpy(&value, image_.table_bytes().data() + offset, sizeof(T));
    return value;
  }

  void clear_executable_stack() {
    const auto header = get<Elf64_Ehdr>(0);
    for (size_t i = 0; i < image_.segments().size(); ++i) {
      Elf64_Phdr segment = image_.segments()[i];
      if (segment.p_type != PT_GNU_STACK || !(segment.p_flags & PF_X)) continue;
      segment.p_flags &= ~static_cast<uint32_t>(PF_X);
      put(header.e_phoff + i * sizeof(Elf64_Phdr), segment);
    }
  }

  // Copies part of the file for changes.
  Patch copy(uint64_t offset, uint64_t size) const {
    const auto bytes = image_.table_bytes().subspan(offset, size);
    return {offset, {bytes.begin(), bytes.end()}};
  }

  bool becomes_weak(size_t i) {
    const Elf64_Sym symbol = image_.symbol(i);
    if (symbol.st_shndx != SHN_UNDEF) return ELF64_ST_BIND(symbol.st_info) == STB_GNU_UNIQUE;
    if (!is_uncalled(image_.symbol_name(i))) return false;
    result_.names_uncalled = true;
    return true;
  }

  void make_symbols_weak() {
    size_t first = 0, last = 0;
    for (size_t i = 1; i < image_.symbol_count(); ++i) {
      if (!becomes_weak(i)) continue;
      if (!first) first = i;
      last = i;
    }
    if (!first) return;
    Patch patch = copy(image_.symbols_offset() + first * sizeof(Elf64_Sym), (last - first + 1) * sizeof(Elf64_Sym));
    for (size_t i = first; i <= last; ++i)
      if (becomes_weak(i))
        patch.bytes[(i - first) * sizeof(Elf64_Sym) + offsetof(Elf64_Sym, st_info)] =
            static_cast<std::byte>(ELF64_ST_INFO(STB_WEAK, ELF64_ST_TYPE(image_.symbol(i).st_info)));
    result_.patches.push_back(std::move(patch));
  }

  // Data are not bound: a variable or type that several libraries define must be one.
  void bind_own_functions(const ByteRange& table) {
    Patch patch = copy(table.offset, table.size);
    bool changed = false;
    for (uint64_t at = 0; at < table.size; at += sizeof(Elf64_Rela)) {
      auto entry = get<Elf64_Rela>(table.offset + at);
      const uint64_t type = ELF64_R_TYPE(entry.r_info);
      const bool slot = type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT;  // these ignore their addend
      if (!slot && type != R_X86_64_64) continue;
      const Elf64_Sym symbol = image_.symbol(ELF64_R_SYM(entry.r_info));
      const bool own = symbol.st_shndx != SHN_UNDEF && symbol.st_shndx < SHN_LORESERVE;
      if (!own || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
      entry.r_addend = static_cast<Elf64_Sxword>(symbol.st_value + (slot ? 0 : static_cast<uint64_t>(entry.r_addend)));
      entry.r_info = ELF64_R_INFO(0, R_X86_64_RELATIVE);
      std::memcpy(patch.bytes.data() + at, &entry, sizeof entry);
      changed = true;
    }
    if (changed) result_.patches.push_back(std::move(patch));
  }

  void put_dynamic(size_t index, int64_t tag, uint64_t value) {
    put(image_.dynamic_offset() + index * sizeof(Elf64_Dyn), Elf64_Dyn{tag, {value}});
  }

  // The dynamic linker holds its lock while it runs initialisers, and does not release it if one throws.
  void postpone_initialisers() {
    for (size_t i = 0; i < image_.dynamic().size(); ++i) {
      const int64_t tag = image_.dynamic()[i].d_tag;
      if (tag == DT_INIT_ARRAYSZ) put_dynamic(i, tag, 0);
      if (tag == DT_INIT) put_dynamic(i, DT_DEBUG, 0);  // ignored in a library
    }
  }

  bool already_needs_sconce() const {
    return std::any_of(image_.needed().begin(), image_.needed().end(),
                       [](const ElfImage::Needed& n) { return n.name == kSconceLibrary; });
  }

  bool dropped(std::string_view library) const {
    return is_torch_library(library) || (options_.drop_cuda_driver && library == kCudaDriverLibrary);
  }

  bool is_cuda_slot(const ElfImage::Needed& needed) const {
    return options_.use_cuda_library && needed.name == kTorchCudaLibrary && usable(needed.name_offset, needed.name, 0);
  }

  void redirect_needed() {
    result_.needs_sconce = already_needs_sconce();
    const std::optional<uint64_t> slot = result_.needs_sconce ? std::nullopt : find_name_slot();
    for (const ElfImage::Needed& needed : image_.needed()) {
      if (!dropped(needed.name)) continue;
      if (is_cuda_slot(needed)) {
        static_assert(kCudaLibrary.size() == kTorchCudaLibrary.size());
        const auto* name = reinterpret_cast<const std::byte*>(kCudaLibrary.data());
        result_.patches.push_back({image_.strings().offset + needed.name_offset, {name, name + kCudaLibrary.size()}});
        result_.needs_cuda_library = true;
        continue;
      }
      if (slot && !result_.needs_sconce) {
        put_dynamic(needed.dynamic_index, DT_NEEDED, *slot);
        result_.needs_sconce = true;
      } else {
        put_dynamic(needed.dynamic_index, kIgnoredTag, 0);
      }
    }
    // A package linked without libtorch has no such entry, but linkers leave spare ones at the end of the dynamic
    // section.
    if (slot && !result_.needs_sconce && image_.spare_dynamic() > 0) {
      put_dynamic(image_.dynamic().size(), DT_NEEDED, *slot);
      result_.needs_sconce = true;
    }
    if (slot && result_.needs_sconce) {
      const auto* name = reinterpret_cast<const std::byte*>(kSconceLibrary.data());
      Patch patch{image_.strings().offset + *slot, {name, name + kSconceLibrary.size()}};
      patch.bytes.push_back(std::byte{0});
      result_.patches.push_back(std::move(patch));
    }
    redirect_versions(slot && result_.needs_sconce ? slot : std::nullopt);
  }

  // glibc ends the process if the library of a version is not among the needed ones. Any needed library will do,
  // because the version is weak.
  void redirect_versions(std::optional<uint64_t> library) {
    const auto kept = [&](std::string_view name) {
      return !dropped(name) && std::any_of(image_.needed().begin(), image_.needed().end(),
                                           [&](const ElfImage::Needed& n) { return n.name == name; });
    };
    for (const ElfImage::Needed& needed : image_.needed())
      if (!library && kept(needed.name)) library = needed.name_offset;
    uint64_t previous = 0;
    for (const ElfImage::NeededVersion& version : image_.needed_versions()) {
      if (version.library_offset == previous || kept(version.library)) continue;
      SCONCE_CHECK(library, kCorruptPackage, "shared object: versions of a library that is not needed: ", image_.name(),
                   ": ", version.library);
      previous = version.library_offset;
      auto entry = get<Elf64_Verneed>(previous);
      entry.vn_file = static_cast<uint32_t>(*library);
      put(previous, entry);
    }
  }

  // Offset in the string table of a name that ours may overwrite: long enough, and read by no other entry.
  std::optional<uint64_t> find_name_slot() const {
    for (const ElfImage::Needed& needed : image_.needed())
      if (is_torch_library(needed.name) && !is_cuda_slot(needed) && usable(needed.name_offset, needed.name, 0))
        return needed.name_offset;
    // Weak references from the C runtime's start files, in every shared object. They stay unresolved in any case.
    for (const std::string_view name : {"_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable"}) {
      const size_t index = image_.find_symbol(name);
      if (index == 0) continue;
      const Elf64_Sym symbol = image_.symbol(index);
      if (symbol.st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) == STB_WEAK &&
          usable(symbol.st_name, name, index))
        return symbol.st_name;
    }
    return std::nullopt;
  }

  // Linkers merge strings with equal ends, so another name may begin before or within this one. `owner` is the name's
  // symbol, 0 if the name is a library's.
  bool usable(uint64_t offset, std::string_view name, size_t owner) const {
    if (name.size() < kSconceLibrary.size()) return false;
    const ByteRange strings = image_.strings();
    if (offset > 0 && image_.table_bytes()[strings.offset + offset - 1] != std::byte{0}) return false;
    const auto within = [&](uint64_t other) { return other > offset && other <= offset + name.size(); };
    for (size_t i = 1; i < image_.symbol_count(); ++i) {
      const uint64_t other = image_.symbol(i).st_name;
      if (within(other) || (other == offset && i != owner)) return false;
    }
    for (const Elf64_Dyn& entry : image_.dynamic()) {
      const bool is_name = entry.d_tag == DT_NEEDED || entry.d_tag == DT_SONAME || entry.d_tag == DT_RPATH ||
                           entry.d_tag == DT_RUNPATH || entry.d_tag == DT_AUXILIARY || entry.d_tag == DT_FILTER;
      if (is_name && within(entry.d_un.d_val)) return false;
    }
    const auto* base = reinterpret_cast<const char*>(image_.table_bytes().data()) + strings.offset;
    for (const ElfImage::NeededVersion& version : image_.needed_versions())
      for (const std::string_view text : {version.library, version.name}) {
        const auto at = static_cast<uint64_t>(text.data() - base);
        // A library's own entry is redirected together with its versions.
        if (within(at) || (at == offset && owner)) return false;
      }
    return true;
  }

  void make_versions_weak() {
    for (const ElfImage::NeededVersion& version : image_.needed_versions()) {
      // Features of the dynamic linker itself, such as packed relocations, cannot be replaced.
      if (version.weak || version.name.starts_with("GLIBC_ABI_")) continue;
      auto aux = get<Elf64_Vernaux>(version.aux_offset);
      aux.vna_flags |= VER_FLG_WEAK;
      put(version.aux_offset, aux);
    }
  }

  void drop_unmapped_sections() {
    result_.unused = image_.unmapped_sections();
    if (result_.unused.empty()) return;
    auto header = get<Elf64_Ehdr>(0);
    header.e_shoff = 0;
    header.e_shnum = 0;
    header.e_shstrndx = SHN_UNDEF;
    put(0, header);
  }

  // Joins adjacent patches, so that few writes are needed. If two overlap, which no linker causes, the later one wins.
  void merge_patches() {
    constexpr uint64_t kMaxGap = 512;
    std::vector<Patch> patches = std::exchange(result_.patches, {});
    std::vector<size_t> order(patches.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return patches[a].offset < patches[b].offset; });
    const auto end_of = [&](size_t i) { return patches[i].offset + patches[i].bytes.size(); };
    for (auto first = order.begin(); first != order.end();) {
      uint64_t end = end_of(*first);
      auto last = first + 1;
      for (; last != order.end() && patches[*last].offset <= end + kMaxGap; ++last) end = std::max(end, end_of(*last));
      if (last - first == 1) {
        result_.patches.push_back(std::move(patches[*first++]));
        continue;
      }
      const uint64_t begin = patches[*first].offset;
      Patch merged = copy(begin, end - begin);
      std::sort(first, last);
      for (; first != last; ++first)
        std::copy(patches[*first].bytes.begin(), patches[*first].bytes.end(),
                  merged.bytes.begin() + static_cast<std::ptrdiff_t>(patches[*first].offset - begin));
      result_.patches.push_back(std::move(merged));
    }
  }

  const ElfImage& image_;
  const FixupOptions& options_;
  Fixups result_;
};

}  // namespace

bool is_torch_library(std::string_view name) noexcept {
  for (const std::string_view stem : {"libtorch", "libc10"}) {
    if (!name.starts_with(stem)) continue;
    const std::string_view rest = name.substr(stem.size());
    if (rest.starts_with('.') || rest.starts_with('_')) return true;
  }
  return false;
}

Fixups compute_fixups(const ElfImage& image, const FixupOptions& options) { return Patcher(image, options).run(); }

}  // namespace sconce::loader
