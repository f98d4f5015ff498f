// Names in state_dict() that share one tensor (b.weight = a.weight). A package has constants for some of them only,
// which torch chooses.
//
// sconce.export records them in the package's metadata (python/sconce/_tied_names.py): key "sconce_tied",
//   {"version": 1, "names": {"a.weight": "b.weight"}}, from every other name to one of the names that the graph uses.
#pragma once

#include <string>
#include <vector>

#include "sconce/package.h"

namespace sconce::runner {

// The names of each such tensor, two or more; no name is in two groups. Empty without an entry in the metadata, and for
// an unknown version. kCorruptPackage for a malformed entry, and for a name that stands for another and is one that
// others stand for.
std::vector<std::vector<std::string>> tied_names(const ModelSpec& spec);

}  // namespace sconce::runner
