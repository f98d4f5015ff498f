// Writes the accesses without a proof as expressions of the inputs' symbols, which are checked for each request.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "package_format/wrapper/accesses/access_bounds.h"
#include "sconce/package.h"

namespace sconce::rows {

// The name of a size; empty if it has none.
using SizeName = std::function<std::string(Atom)>;

// Each open access with all loops at their first positions, and with all at their last ones. Leaves out an access if
// these sizes do not determine its condition or its element. Each bound appears once.
std::vector<AccessBound> open_bounds(AccessBounds& bounds, Atoms& atoms, const SizeName& name);

}  // namespace sconce::rows
