// What the body of a generated run_impl tells beyond the checks: which dimensions share a symbol, what the outputs are,
// and dtypes that no check names (torch 2.6).
//
// The body is straight-line code, one statement a line, of a few dozen forms (FORMAT.md). Values of tensors are
// followed by the names of their C++ variables. A statement of another form leaves what it makes unknown.
#pragma once

#include <string_view>

#include "sconce/package.h"

namespace sconce {

// `body` starts at run_impl. Completes dims, dtypes and outputs of `spec`.
void read_graph(std::string_view body, ModelSpec& spec);

}  // namespace sconce
