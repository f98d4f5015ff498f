// What is changed in the copy of a model's .so so that it loads here and unloads completely:
//   - no executable stack (weights and cubins are assembled without .note.GNU-stack; glibc 2.41 refuses such a file,
//     older ones make every thread's stack executable),
//   - STB_GNU_UNIQUE symbols become weak ones (glibc never unmaps an object that has a unique one),
//   - undefined symbols that it never reaches (uncalled.h) become weak: nobody has them,
//   - its references to functions of its own are bound to them, which saves the dynamic linker most of its searches,
//   and
//     the model from functions of the same name in the host process,
//   - libtorch* and libc10* are not needed any more, libsconce is: its name takes the place of libtorch_cpu.so in the
//     string table, or of another name there that nothing can need,
//   - version needs become weak: a symbol that only a newer glibc has is then looked up in libsconce. What nobody has
//     still fails to load.
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
  // Parts of the file that need not be copied, as nothing reads them at run time.
  std::vector<ByteRange> unused;
  bool names_uncalled = false;      // its imports include symbols of uncalled.h
  bool needs_cuda_library = false;  // the same for libsconce_cuda
  // False: the file has no room for our name, so libsconce must be in the global scope.
  bool needs_sconce = false;
};

// The fix-ups hide initialisers from the dynamic linker; SharedLibrary runs them after dlopen().
Fixups compute_fixups(const ElfImage& image, const FixupOptions& options = {});

// "libtorch.so", "libtorch_cpu.so", "libc10.so", "libc10_cuda.so", ...
bool is_torch_library(std::string_view name) noexcept;

}  // namespace sconce::loader
