// The library's version.
#pragma once

#include <string>

namespace sconce {

std::string version();  // "0.1.0"

}  // namespace sconce
