// Writes the accesses that no proof bounds as expressions of the inputs' symbols, which each request decides.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "package_format/wrapper/accesses/access_bounds.h"
#include "sconce/package.h"

namespace sconce::rows {

// The name of a size; empty: it has none.
using SizeName = std::function<std::string(Atom)>;

// Each open access with all loops at their first places, and with all at their last ones. Left out is an access of
// which these sizes do not tell whether it is made, or where. Each bound is there once.
std::vector<AccessBound> open_bounds(AccessBounds& bounds, Atoms& atoms, const SizeName& name);

}  // namespace sconce::rows
