// Preflight: finds every reason why a model cannot run in this process before any of its code does. Thread-safe. Its
// only effect is that it opens libraries that the model needs (SLEEF stays open).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "package_format/elf_image.h"
#include "sconce/package.h"
#include "src/custom_ops/extern_nodes.h"

namespace sconce::loader {

// Sentence fragments; empty: the model can be loaded.
//   - compiled for another operating system, machine or device than there is
//   - instruction sets that CPU or kernel lack: -march (native says nothing) and the like in the compile command, and
//     AOTI_CPU_ISA
//   - older than torch 2.6, or no AOTInductor model at all
//   - libraries it needs that are not installed
//   - symbols that nobody has, in the version it asks for: all of them, grouped by what can be done about it
//   - operators it calls by name (src/custom_ops/extern_nodes.h) that neither this build nor a library has
std::vector<std::string> incompatibilities(const ModelSpec& spec, const ElfImage& image,
                                           const custom_ops::ExternNodes* calls = nullptr);

// kIncompatible with all of them in one message. If it returns, SharedLibrary::load works, memory permitting.
void preflight(const ModelSpec& spec, const ElfImage& image, const custom_ops::ExternNodes* calls = nullptr);

// The same for a library of custom operators: its platform, libraries and symbols.
void check_op_library(const ElfImage& image);

// What the model calls by name; null if nothing. kCorruptPackage.
std::shared_ptr<const custom_ops::ExternNodes> extern_nodes(const Package& package, const ModelSpec& spec);

}  // namespace sconce::loader
