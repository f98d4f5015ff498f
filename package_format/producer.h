// Guesses the version of PyTorch that compiled a library from its exports and source; no member of a package records
// it.
#pragma once

#include <string>
#include <string_view>

#include "package_format/elf_image.h"

namespace sconce {

// "torch 2.11 or 2.12". `source` is the generated source, or empty. kUnsupported names the member: the library is not
// a model, or older than torch 2.6.
std::string find_producer(const ElfImage& so, std::string_view source, const std::string& member);

}  // namespace sconce
