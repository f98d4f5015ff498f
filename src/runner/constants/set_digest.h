// The digest of a constant set: equal for equal values, whatever their places and strides.
//
// SHA-256 over the stored constants that have a value, in the byte order of their names. Each adds its name (FQN, else
// its own), its dtype ("float32") and its sizes ("2,3"), each with a zero byte after it, then its elements, row-major
// and little endian. Constants that share a name count once; constants that the compiler packed are hashed as stored.
// For buffers that the model writes, the set's values count, not those in the replicas.
#pragma once

#include <string>

#include "src/runner/constants/constant_set.h"

namespace sconce::runner {

// "sha-256:HEX". kUnavailable without libcrypto. Thread-safe.
std::string set_digest(const ConstantTable& table, const ConstantSet& set);

}  // namespace sconce::runner
