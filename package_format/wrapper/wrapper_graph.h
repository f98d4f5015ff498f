// Reads facts from the body of a generated run_impl that the input checks lack: dimensions that share a symbol, the
// outputs, and dtypes that no check names (torch 2.6).
//
// The body is straight-line code, one statement per line, in a few dozen forms (FORMAT.md). Tensors are tracked by the
// names of their C++ variables. The results of a statement of another form are unknown.
#pragma once

#include <string_view>

#include "sconce/package.h"

namespace sconce {

// `body` starts at run_impl. Completes dims, dtypes and outputs of `spec`.
void read_graph(std::string_view body, ModelSpec& spec);

}  // namespace sconce
