// The description in a package, as a self-contained page.
#pragma once

#include <span>
#include <string>

#include "sconce/package.h"

namespace sconce::server::cli {

std::string inspect_page(const Package& package, std::span<const ModelSpec* const> models);

}  // namespace sconce::server::cli
