// How far the constants of two sets of one model are apart.
#pragma once

#include <vector>

#include "sconce/difference.h"
#include "src/runner/constants/constant_set.h"

namespace sconce::runner {

// The stored constants that have a value in either set, in the byte order of their names; constants that share a name
// count once. Memory that both sets share is not read. Constants that the compiler packed cannot be replaced, so they
// are equal. Thread-safe.
std::vector<TensorDifference> set_difference(const ConstantTable& table, const ConstantSet& from,
                                             const ConstantSet& to);

}  // namespace sconce::runner
