// SLEEF, whose functions torch has built in and models import without naming a library. libsconce exports them all;
// libsleef.so.3 is opened when a model that imports one is about to be loaded, or an operator calls one
// (src/cpu/vector/lanes.h).
#pragma once

#include "src/device/lazy_library.h"

namespace sconce {

// require_library(sleef_library()) before code of a model that imports Sleef_* runs.
LazyLibrary& sleef_library() noexcept;

}  // namespace sconce
