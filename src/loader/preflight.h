// Preflight: finds every reason why a model cannot run in this process before any of its code runs. Thread-safe. Its
// only side effect is that it opens libraries that the model needs (SLEEF stays open).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "package_format/elf_image.h"
#include "sconce/package.h"
#include "src/custom_ops/extern_nodes.h"

namespace sconce::loader {

// Sentence fragments; empty: the model can be loaded.
//   - compiled for another operating system, machine or device than the present one
//   - instruction sets that CPU or kernel lack: -march (except native) and similar options in the compile command, and
//     AOTI_CPU_ISA
//   - older than torch 2.6, or not an AOTInductor model
//   - needed libraries that are not installed
//   - symbols that no library defines in the required version: all of them, grouped by remedy
//   - operators called by name (src/custom_ops/extern_nodes.h) that neither this build nor a loaded library has
std::vector<std::string> incompatibilities(const ModelSpec& spec, const ElfImage& image,
                                           const custom_ops::ExternNodes* calls = nullptr);

// kIncompatible with all reasons in one message. If it returns, SharedLibrary::load succeeds if memory suffices.
void preflight(const ModelSpec& spec, const ElfImage& image, const custom_ops::ExternNodes* calls = nullptr);

// As above, for a library of custom operators: its platform, libraries and symbols.
void check_op_library(const ElfImage& image);

// The operators that the model calls by name; null if there are none. kCorruptPackage.
std::shared_ptr<const custom_ops::ExternNodes> extern_nodes(const Package& package, const ModelSpec& spec);

}  // namespace sconce::loader
