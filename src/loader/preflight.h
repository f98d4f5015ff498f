// Preflight: every reason why a model cannot run in this process, found before any of its code does.
// Thread-safe; changes nothing but that libraries which the model needs are opened (SLEEF stays open).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sconce/package.h"

namespace sconce::loader {

// One sentence fragment each; empty: the model can be loaded. kCorruptPackage where the image is no sound ELF file.
//   - compiled for another operating system, machine or device than there is
//   - instruction sets that CPU or kernel lack: -march (native says nothing) and the like in the compile command, and
//     AOTI_CPU_ISA
//   - older than torch 2.6, or no AOTInductor model at all
//   - libraries it needs that are not installed
//   - symbols that nobody has, in the version it asks for: all of them, grouped by what can be done about it
std::vector<std::string> incompatibilities(const ModelSpec& spec, std::span<const std::byte> image);

// kIncompatible with all of them in one message. Afterwards SharedLibrary::load works, memory permitting.
void preflight(const ModelSpec& spec, std::span<const std::byte> image);

}  // namespace sconce::loader
