#include "src/loader/library/shared_library.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "package_format/elf_image.h"
#include "src/device/device_backend.h"
#include "src/faults/code_entry.h"
#include "src/faults/code_ranges.h"
#include "src/loader/library/elf_fixups.h"
#include "src/loader/library/memory_operators.h"
#include "src/loader/library/own_library.h"
#include "src/loader/library/parallel_regions.h"
#include "src/loader/library/thread_locals.h"
#include "src/loader/library/uncalled.h"

namespace sconce::loader {
namespace {

std::string dl_error() {
  const char* text = dlerror();
  return text ? text : "no reason given";
}

// The error code for the dynamic linker's message: something is missing, or the file is wrong.
ErrorCode code_of_refusal(std::string_view reason) noexcept {
  const auto says = [&](std::string_view words) { return reason.find(words) != std::string_view::npos; };
  // A file name without further words also means that memory for the name was missing.
  if (says("cannot allocate") || reason.ends_with("Cannot allocate memory") ||
      reason.ends_with("cannot open shared object file"))
    return ErrorCode::kOutOfMemory;
  if (says("cannot dynamically load")) return ErrorCode::kIncompatible;
  for (const std::string_view words : {": cannot open", ": cannot stat", ": cannot map", ": cannot read",
                                       ": cannot close", ": cannot create", ": cannot change", ": failed to map"})
    if (says(words)) return ErrorCode::kUnavailable;
  return ErrorCode::kIncompatible;
}

bool needs(const ElfImage& image, std::string_view library) {
  return std::any_of(image.needed().begin(), image.needed().end(),
                     [&](const ElfImage::Needed& needed) { return needed.name == library; });
}

bool installed(const char* library) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (handle) dlclose(handle);
  return handle != nullptr;
}

void check_holes(const ElfImage& image, std::span<const ByteRange> holes) {
  for (const ByteRange& hole : holes) {
    SCONCE_CHECK(hole.offset <= image.bytes().size() && hole.size <= image.bytes().size() - hole.offset,
                 kInvalidArgument, "model code: a hole lies outside the file: ", image.name(), ": offset ", hole.offset,
                 ", size ", hole.size);
    for (const ByteRange& table : image.tables())
      SCONCE_CHECK(!hole.overlaps(table), kInvalidArgument,
                   "model code: a hole lies where the dynamic linker reads: ", image.name(), ": offset ", hole.offset,
                   ", size ", hole.size);
  }
}

// The parts of [0, size) that no range covers.
std::vector<ByteRange> complement(std::vector<ByteRange> ranges, uint64_t size) {
  std::sort(ranges.begin(), ranges.end(), [](const ByteRange& a, const ByteRange& b) { return a.offset < b.offset; });
  std::vector<ByteRange> result;
  uint64_t at = 0;
  for (const ByteRange& range : ranges) {
    if (range.offset > at) result.push_back({at, range.offset - at});
    at = std::max(at, range.end());
  }
  if (at < size) result.push_back({at, size - at});
  return result;
}

// The same bytes of [0, size) in as few ranges as possible, because each range costs a system call.
std::vector<ByteRange> united(std::span<const ByteRange> ranges, uint64_t size) {
  return complement(complement({ranges.begin(), ranges.end()}, size), size);
}

}  // namespace

SharedLibrary SharedLibrary::load(const ElfImage& image, std::span<const ByteRange> holes, bool cuda,
                                  const std::function<void()>& still_good, const std::string& reported) {
  SCONCE_CHECK(image.machine() == EM_X86_64, kIncompatible, "model code: ", image.name(),
               " is not compiled for x86-64: ELF machine ", image.machine());
  check_holes(image, holes);
  const Fixups fixups = compute_fixups(
      image, {.drop_cuda_driver = needs(image, kCudaDriverLibrary) && !installed(kCudaDriverLibrary.data()),
              .use_cuda_library = cuda});
  if (cuda && !fixups.needs_cuda_library)
    SCONCE_CHECK(dlopen(kCudaLibrary.data(), RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL), kUnavailable,
                 "model code: ", image.name(), " needs ", kCudaLibrary, " in the global scope: ", dl_error());
  if (!fixups.needs_sconce) make_own_library_global();

  std::vector<ByteRange> left_out = fixups.unused;
  left_out.insert(left_out.end(), holes.begin(), holes.end());
  const std::vector<ByteRange> copied = complement(std::move(left_out), image.bytes().size());

  SharedLibrary library;
  library.name_ = image.name();
  library.place(image, fixups, copied, still_good);
  library.remember(image, reported.empty() ? library.name_ : reported);
  library.rebind("__cxa_thread_atexit", reinterpret_cast<void*>(&add_thread_local));
  library.take_thread_image(image);
  if (fixups.names_uncalled)
    for (const Uncalled& uncalled : uncalled_names()) library.rebind(uncalled.symbol, uncalled.replacement);
  bind_parallel_regions(library);
  bind_memory_operators(library);
  library.initialise();
  return library;
}

// Copies the image to the first place from which it can be loaded, and loads it.
void SharedLibrary::place(const ElfImage& image, const Fixups& fixups, std::span<const ByteRange> copied,
                          const std::function<void()>& still_good) {
  const std::vector<ByteRange> tables = united(image.tables(), image.bytes().size());
  std::string refused;
  for (const LibraryFile::Place& where : LibraryFile::places()) {
    LibraryFile file(where, name_, image.bytes().size());
    for (const ByteRange& range : copied) file.write(range.offset, image.bytes().subspan(range.offset, range.size));
    // The dynamic linker must follow the tables that were checked, even if the package file has changed.
    for (const ByteRange& range : tables)
      file.write(range.offset, image.table_bytes().subspan(range.offset, range.size));
    for (const Patch& patch : fixups.patches) file.write(patch.offset, patch.bytes);
    file.seal();
    std::string reason;
    if (file.error().empty()) {
      if (still_good) still_good();
      handle_ = dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_) {
        backing_ = to_string(where) + (refused.empty() ? "" : " (" + refused + ")");
        file_ = std::move(file);
        return;
      }
      reason = dl_error();
      file.unmap_leftovers();
      file.check_loadable();
    }
    if (file.error().empty())
      throw Error(code_of_refusal(reason), "model code: " + name_ + " cannot be loaded: " + reason);
    refused += (refused.empty() ? "" : "; ") + file.error();
  }
  SCONCE_FAIL(kIo, "model code: ", name_, " needs a place that code can be mapped from, and none is left: ", refused);
}

void SharedLibrary::remember(const ElfImage& image, const std::string& reported) {
  link_map* map = nullptr;
  SCONCE_CHECK(dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 && map, kInternal, "model code: ", name_,
               " is not known to the dynamic linker: ", dl_error());
  base_ = reinterpret_cast<std::byte*>(map->l_addr);  // NOLINT: an address, as the ABI has it
  layout_.first = image.first_address();
  layout_.last = image.last_address();
  layout_.symbol_count = image.symbol_count();
  for (const Elf64_Dyn& entry : image.dynamic()) {
    const uint64_t value = entry.d_un.d_val;
    switch (entry.d_tag) {
      case DT_SYMTAB:
        layout_.symbols = value;
        break;
      case DT_STRTAB:
        layout_.strings = value;
        break;
      case DT_RELA:
        layout_.relocations.offset = value;
        break;
      case DT_RELASZ:
        layout_.relocations.size = value;
        break;
      case DT_JMPREL:
        layout_.plt_relocations.offset = value;
        break;
      case DT_PLTRELSZ:
        layout_.plt_relocations.size = value;
        break;
      case DT_INIT:
        layout_.initialiser = value;
        break;
      case DT_INIT_ARRAY:
        layout_.initialisers.offset = value;
        break;
      case DT_INIT_ARRAYSZ:
        layout_.initialisers.size = value;
        break;
    }
  }
  for (const Elf64_Phdr& segment : image.segments())
    if (segment.p_type == PT_GNU_RELRO) layout_.relro = {segment.p_vaddr, segment.p_memsz};
  const auto base = reinterpret_cast<uintptr_t>(base_);
  for (const Elf64_Phdr& segment : image.segments())
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X))
      code_.push_back(
          faults::add_code_range(base + segment.p_vaddr, base + segment.p_vaddr + segment.p_memsz, reported));
}

void SharedLibrary::initialise() const {
  const faults::CodeEntry entry(reported_name());
  using Initialiser = void (*)(int, char**, char**);
  char* none[] = {nullptr};
  const auto run = [&](uint64_t address) { reinterpret_cast<Initialiser>(address)(0, none, environ); };
  const auto base = reinterpret_cast<uint64_t>(base_);
  if (layout_.initialiser) run(base + layout_.initialiser);
  if (layout_.initialisers.offset == 0) return;  // ignore a size without an address
  const auto* const pointers = reinterpret_cast<const uint64_t*>(base_ + layout_.initialisers.offset);
  for (uint64_t i = 0; i < layout_.initialisers.size / sizeof(uint64_t); ++i) run(pointers[i]);
}

void SharedLibrary::take_thread_image(const ElfImage& image) {
  for (const Elf64_Phdr& segment : image.segments()) {
    if (segment.p_type != PT_TLS) continue;
    constexpr uint64_t kMost = 1 << 24, kMaxAlignment = 1 << 16;
    SCONCE_CHECK(segment.p_memsz <= kMost && segment.p_align <= kMaxAlignment &&
                     (segment.p_align & (segment.p_align - 1)) == 0 &&
                     (segment.p_filesz == 0 || !image.bytes_at(segment.p_vaddr, segment.p_filesz).empty()),
                 kCorruptPackage, "model code: ", name_,
                 " has thread-local memory that makes no sense: ", segment.p_memsz, " bytes, alignment ",
                 segment.p_align);
    size_t module = 0;
    SCONCE_CHECK(dlinfo(handle_, RTLD_DI_TLS_MODID, &module) == 0, kInternal, "model code: ", name_,
                 " has no thread-local memory known to the dynamic linker: ", dl_error());
    add_thread_image({module, base_ + segment.p_vaddr, segment.p_filesz, segment.p_memsz, segment.p_align});
    rebind("__tls_get_addr", reinterpret_cast<void*>(&find_thread_local));
  }
}

SharedLibrary::SharedLibrary(SharedLibrary&& other) noexcept
    : name_(std::move(other.name_)),
      backing_(std::move(other.backing_)),
      file_(std::move(other.file_)),
      handle_(std::exchange(other.handle_, nullptr)),
      base_(other.base_),
      code_(std::exchange(other.code_, {})),
      layout_(other.layout_) {}

SharedLibrary& SharedLibrary::operator=(SharedLibrary&& other) noexcept {
  if (this == &other) return *this;
  unload();
  name_ = std::move(other.name_);
  backing_ = std::move(other.backing_);
  file_ = std::move(other.file_);
  handle_ = std::exchange(other.handle_, nullptr);
  base_ = other.base_;
  code_ = std::exchange(other.code_, {});
  layout_ = other.layout_;
  return *this;
}

void SharedLibrary::make_global() {
  void* const again = dlopen(file_.path().c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  SCONCE_CHECK(again, kInternal, "model code: ", name_, " cannot be made global: ", dl_error());
  dlclose(again);
}

void SharedLibrary::unload() noexcept {
  if (!handle_) return;
  for (faults::CodeRange* range : code_) faults::remove_code_range(range);
  code_.clear();
  if (base_)
    destroy_thread_locals(reinterpret_cast<uintptr_t>(base_ + layout_.first),
                          reinterpret_cast<uintptr_t>(base_ + layout_.last));
  dlclose(std::exchange(handle_, nullptr));
  // A library with DF_1_NODELETE stays loaded. Keep its descriptor, so that no other file gets its path. Look it up by
  // path: by now, another library may be at the address.
  void* const still = base_ ? dlopen(file_.path().c_str(), RTLD_NOW | RTLD_NOLOAD) : nullptr;
  if (!still) return;
  dlclose(still);
  file_.abandon();
}

void* SharedLibrary::find(const char* symbol) const noexcept {
  if (!handle_) return nullptr;
  auto* found = static_cast<std::byte*>(dlsym(handle_, symbol));  // also searches the library's dependencies
  return found >= base_ + layout_.first && found < base_ + layout_.last ? found : nullptr;
}

uint64_t SharedLibrary::find_import(const char* name) const noexcept {
  if (!handle_) return 0;
  const auto* symbols = reinterpret_cast<const Elf64_Sym*>(base_ + layout_.symbols);
  const char* strings = reinterpret_cast<const char*>(base_ + layout_.strings);
  for (uint64_t i = 1; i < layout_.symbol_count; ++i)
    if (symbols[i].st_shndx == SHN_UNDEF && std::strcmp(strings + symbols[i].st_name, name) == 0) return i;
  return 0;
}

uint64_t SharedLibrary::damage() const noexcept {
  uint64_t count = 0;
  for (const faults::CodeRange* range : code_) count += faults::damage_of(*range);
  return count;
}

uint64_t SharedLibrary::loss() const noexcept {
  uint64_t bytes = 0;
  for (const faults::CodeRange* range : code_) bytes += faults::loss_of(*range);
  return bytes;
}

const char* SharedLibrary::reported_name() const noexcept {
  return code_.empty() ? name_.c_str() : faults::name_of(*code_.front());
}

std::vector<std::string> SharedLibrary::imports_of(std::string_view prefix) const {
  std::vector<std::string> names;
  const auto* symbols = reinterpret_cast<const Elf64_Sym*>(base_ + layout_.symbols);
  const char* strings = reinterpret_cast<const char*>(base_ + layout_.strings);
  for (uint64_t i = 1; handle_ && i < layout_.symbol_count; ++i)
    if (symbols[i].st_shndx == SHN_UNDEF && std::string_view(strings + symbols[i].st_name).starts_with(prefix))
      names.emplace_back(strings + symbols[i].st_name);
  return names;
}

void* SharedLibrary::rebind(const char* imported, void* replacement) {
  const uint64_t wanted = find_import(imported);
  if (!wanted) return nullptr;

  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  // The pages that the dynamic linker has made read-only: only whole pages, also at the end.
  const uint64_t relro_begin = layout_.relro.offset & ~(page - 1);
  const uint64_t relro_end = layout_.relro.end() & ~(page - 1);
  void* before = nullptr;
  const auto rebind_slots = [&](const ByteRange& table) {
    const auto* entries = reinterpret_cast<const Elf64_Rela*>(base_ + table.offset);
    for (uint64_t i = 0; i < table.size / sizeof(Elf64_Rela); ++i) {
      const uint64_t type = ELF64_R_TYPE(entries[i].r_info);
      if (ELF64_R_SYM(entries[i].r_info) != wanted ||
          (type != R_X86_64_GLOB_DAT && type != R_X86_64_JUMP_SLOT && type != R_X86_64_64))
        continue;
      const uint64_t address = entries[i].r_offset;
      const bool read_only = address >= relro_begin && address < relro_end;
      std::byte* pages = base_ + (address & ~(page - 1));
      const int open = read_only ? mprotect(pages, page, PROT_READ | PROT_WRITE) : 0;
      const int error = errno;
      SCONCE_CHECK(open == 0, kIo, "model code: ", name_, ": cannot make the slot of ", imported,
                   " writable: ", std::strerror(error));
      auto* slot = reinterpret_cast<void**>(base_ + address);
      if (!before) before = *slot;
      *slot = static_cast<std::byte*>(replacement) + (type == R_X86_64_64 ? entries[i].r_addend : 0);
      if (read_only) mprotect(pages, page, PROT_READ);
    }
  };
  rebind_slots(layout_.relocations);
  rebind_slots(layout_.plt_relocations);
  return before;
}

}  // namespace sconce::loader
