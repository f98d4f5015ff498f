// SharedLibrary: a model's code, mapped from a copy in memory.
//
// The copy has the changes of elf_fixups.h. The process needs no libtorch, and nothing is written to a disk. The
// destructor unloads it completely: mapping, file descriptor, thread-local objects. load() is thread-safe. An object
// is immutable except for rebind(), which its owner calls before other code uses it. When it is destroyed, no thread
// may be inside the library and none of its exceptions may be alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "package_format/files/byte_range.h"
#include "sconce/check.h"
#include "src/loader/library/library_file.h"

namespace sconce {
class ElfImage;
}

namespace sconce::faults {
class CodeRange;
}

namespace sconce::loader {

struct Fixups;

class SharedLibrary {
 public:
  SharedLibrary() = default;  // empty
  // Reads `image` during the call only. `holes` are ranges that are not copied and read as zeros, for constants that
  // have another source. `still_good` is called after the copy is made and before any of it runs. Throws
  // kCorruptPackage, kIncompatible (a symbol or library is missing; preflight has the better message), kIo (no memory
  // or file to map code from: names every attempt) and kInvalidArgument (a hole where the dynamic linker reads).
  // Passes on exceptions of `still_good` and of the library's initialisers. `reported` is the name in fault reports;
  // empty: the library's name.
  static SharedLibrary load(const ElfImage& image, std::span<const ByteRange> holes = {}, bool cuda = false,
                            const std::function<void()>& still_good = {}, const std::string& reported = {});
  SharedLibrary(SharedLibrary&& other) noexcept;
  SharedLibrary& operator=(SharedLibrary&& other) noexcept;
  ~SharedLibrary() { unload(); }

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  const std::string& name() const noexcept { return name_; }

  // A symbol that the library itself exports; null if it does not.
  void* find(const char* symbol) const noexcept;
  template <class F>
  F* function(const char* symbol) const {
    void* found = find(symbol);
    SCONCE_CHECK(found, kIncompatible, "model code: ", name_, " does not export ", symbol);
    return reinterpret_cast<F*>(found);
  }

  bool imports(const char* symbol) const noexcept { return find_import(symbol) != 0; }
  // The imported symbols whose names have this prefix.
  std::vector<std::string> imports_of(std::string_view prefix) const;
  // Makes the library call `replacement` instead of an imported function (by its GOT slots). Returns the earlier
  // function, null if the library does not import it. kIo if the slots cannot be made writable.
  void* rebind(const char* imported, void* replacement);

  // Makes its symbols visible to libraries that are loaded later.
  void make_global();

  // Invalid memory accesses and illegal instructions of its code so far, each of which ended a run.
  uint64_t damage() const noexcept;

  // Bytes that its code allocated and lost when frames were abandoned.
  uint64_t loss() const noexcept;

  // Its name in fault reports.
  const char* reported_name() const noexcept;

  // The file that its code is mapped from: "memory", or "an unnamed file in /dev/shm (memory: Operation not
  // permitted)".
  const std::string& backing() const noexcept { return backing_; }

 private:
  // Tables of the image; addresses are relative to base_.
  struct Layout {
    uint64_t first = 0, last = 0;  // addresses of the segments
    uint64_t symbols = 0, symbol_count = 0, strings = 0;
    ByteRange relocations{}, plt_relocations{}, relro{};
    uint64_t initialiser = 0;
    ByteRange initialisers{};  // of pointers to them
  };
  void place(const ElfImage& image, const Fixups& fixups, std::span<const ByteRange> copied,
             const std::function<void()>& still_good);
  void remember(const ElfImage& image, const std::string& reported);
  void take_thread_image(const ElfImage& image);
  void initialise() const;
  void unload() noexcept;
  uint64_t find_import(const char* name) const noexcept;  // index of its symbol; 0: there is none

  std::string name_, backing_;
  LibraryFile file_;
  void* handle_ = nullptr;
  std::byte* base_ = nullptr;  // load address
  std::vector<faults::CodeRange*> code_;
  Layout layout_;
};

}  // namespace sconce::loader
