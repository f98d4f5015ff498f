// Which version of PyTorch compiled a library. No member of a package says so; its exports and its source tell nearly.
#pragma once

#include <string>
#include <string_view>

#include "package_format/elf_image.h"

namespace sconce {

// "torch 2.11 or 2.12". `source` is the generated source, empty if there is none. kUnsupported for a library that is no
// model and for one of a version before 2.6; names the member.
std::string find_producer(const ElfImage& so, std::string_view source, const std::string& member);

}  // namespace sconce
