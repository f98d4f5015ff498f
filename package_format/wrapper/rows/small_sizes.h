// Finds out which sizes below a recorded minimum of 2 a model takes, and which accesses a request's sizes decide.
#pragma once

#include "package_format/wrapper/rows/parsed_code.h"
#include "sconce/package.h"

namespace sconce {

// Sets Dim::smallest of the inputs and ModelSpec::bounds of a model for the CPU whose source was read.
void find_small_sizes(rows::ParsedCode& code, ModelSpec& spec);

}  // namespace sconce
