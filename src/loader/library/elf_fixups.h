// Changes to the copy of a model's .so, so that it loads here and unloads completely:
//   - no executable stack (weights and cubins are assembled without .note.GNU-stack; glibc 2.41 refuses such a file,
//     older versions make every thread's stack executable),
//   - STB_GNU_UNIQUE symbols become weak (glibc never unmaps an object that has a unique symbol),
//   - undefined symbols that it never reaches (uncalled.h) become weak, because no library defines them,
//   - references to its own functions are bound to them: the dynamic linker does fewer searches, and the model cannot
//     pick up functions of the same name from the host process,
//   - libtorch* and libc10* are no longer needed, but libsconce is: its name replaces libtorch_cpu.so in the string
//     table, or another name there that nothing can need,
//   - version needs become weak: a symbol that only a newer glibc has is then looked up in libsconce. A symbol that no
//     library defines still fails to load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "package_format/elf_image.h"
#include "package_format/files/byte_range.h"

namespace sconce::loader {

// libsconce's SONAME.
inline constexpr std::string_view kSconceLibrary = "libsconce.so.0";
inline constexpr std::string_view kCudaDriverLibrary = "libcuda.so.1";
inline constexpr std::string_view kTorchCudaLibrary = "libtorch_cuda.so";

struct Patch {
  uint64_t offset;  // in the file
  std::vector<std::byte> bytes;
};

struct FixupOptions {
  bool drop_cuda_driver = false;  // not installed: the model's calls resolve to libsconce
  bool use_cuda_library = false;  // libtorch_cuda becomes libsconce_cuda, a name of equal length
};

struct Fixups {
  std::vector<Patch> patches;  // in order of offsets, without overlap
  // Parts of the file that need not be copied, because no code reads them at run time.
  std::vector<ByteRange> unused;
  bool names_uncalled = false;      // its imports include symbols of uncalled.h
  bool needs_cuda_library = false;  // the same for libsconce_cuda
  // False: the file has no room for our name, so libsconce must be in the global scope.
  bool needs_sconce = false;
};

// The fixups hide initialisers from the dynamic linker; SharedLibrary runs them after dlopen().
Fixups compute_fixups(const ElfImage& image, const FixupOptions& options = {});

// "libtorch.so", "libtorch_cpu.so", "libc10.so", "libc10_cuda.so", ...
bool is_torch_library(std::string_view name) noexcept;

}  // namespace sconce::loader
