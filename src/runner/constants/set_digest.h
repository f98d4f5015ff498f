// The digest of a constant set: equal for equal values, wherever they lie and in whatever strides.
//
// SHA-256 over, for each stored constant that has a value, in the byte order of the names: its name (FQN, else its
// own), its dtype ("float32") and its sizes ("2,3"), each with a zero byte behind it, then its elements, row-major and
// little endian. Constants that share a name count once; those that the compiler packed go in as they are stored.
// Buffers that the model writes count with the set's values, not with what replicas made of them.
#pragma once

#include <string>

#include "src/runner/constants/constant_set.h"

namespace sconce::runner {

// "sha-256:HEX". kUnavailable without libcrypto. Thread-safe.
std::string set_digest(const ConstantTable& table, const ConstantSet& set);

}  // namespace sconce::runner
