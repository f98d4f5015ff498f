// Copies of a constant for replicas and sequences that may write it, of which only the pages that are written take
// memory. For large constants that are probably not written at all.
#pragma once

#include "sconce/storage.h"

namespace sconce::runner {

// One more copy of a constant's bytes, on the host and at a multiple of a page. The first call for a storage, which
// must be immutable, copies them once, as one of its derived values. Null if the system has no memory or descriptor for
// that; the caller may still have room for a plain copy. Thread-safe.
StoragePtr own_pages(Storage& constant);

}  // namespace sconce::runner
