// Finds the sizes below a recorded minimum of 2 that a model accepts, and the accesses to check for each request.
#pragma once

#include "package_format/wrapper/rows/parsed_code.h"
#include "sconce/package.h"

namespace sconce {

// Sets Dim::smallest of the inputs and ModelSpec::bounds, for a CPU model whose source was read.
void find_small_sizes(rows::ParsedCode& code, ModelSpec& spec);

}  // namespace sconce
