// Finds out whether the rows of a model's batch are computed apart, so that requests may share its runs.
#pragma once

#include "package_format/wrapper/rows/parsed_code.h"
#include "sconce/package.h"

namespace sconce {

// Sets ModelSpec::rows and coarsest_buffer. The metadata and the inputs' symbols are known. What sconce.export proved
// on the exported graph stands in the metadata ("sconce_rows", FORMAT.md); else the generated source is read, statement
// by statement: what has no rule proves nothing (wrapper/rows).
void prove_rows(rows::ParsedCode& code, ModelSpec& spec);

}  // namespace sconce
