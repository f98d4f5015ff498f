// Describes a package as JSON text; docs/c_api.md has the form. Missing facts are null. Bytes of the package's names
// that are not UTF-8 become U+FFFD.
#pragma once

#include <string>

#include "sconce/package.h"

namespace sconce {

std::string json_text(const ModelSpec& model);
std::string json_text(const CallSpec& call);    // "null" if the package does not record it
std::string json_text(const Package& package);  // its path, its producer and all models

}  // namespace sconce
