// Proves that the rows of a model's batch are independent, which dynamic batching requires.
#pragma once

#include "package_format/wrapper/rows/parsed_code.h"
#include "sconce/package.h"

namespace sconce {

// Sets ModelSpec::rows and coarsest_buffer. Needs the metadata and the inputs' symbols. If the metadata has the result
// of sconce.export's proof ("sconce_rows", FORMAT.md), uses it; else reads the generated source statement by
// statement. A statement without a rule ends the attempt without a proof (wrapper/rows).
void prove_rows(rows::ParsedCode& code, ModelSpec& spec);

}  // namespace sconce
