// SLEEF's functions, which torch contains and models import without naming a library. libsconce exports them all.
// libsleef.so.3 is opened before a model that imports one is loaded, or when an operator calls one
// (src/cpu/vector/lanes.h).
#pragma once

#include "src/device/lazy_library.h"

namespace sconce {

// Call require_library(sleef_library()) before code of a model that imports Sleef_* runs.
LazyLibrary& sleef_library() noexcept;

}  // namespace sconce
