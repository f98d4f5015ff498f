// Finds out whether the rows of a model's batch are computed apart, so that requests may share its runs.
#pragma once

#include <span>
#include <string_view>

#include "package_format/wrapper/wrapper_source.h"
#include "sconce/package.h"

namespace sconce {

// Sets ModelSpec::rows and coarsest_buffer. The metadata and the inputs' symbols are known. What sconce.export proved
// on the exported graph stands in the metadata ("sconce_rows", FORMAT.md); else the generated source is read, statement
// by statement: what has no rule proves nothing (wrapper/rows). kernels: the source before run_impl, and the sources of
// its kernels.
void prove_rows(const WrapperSource& source, std::span<const std::string_view> kernels, ModelSpec& spec);

}  // namespace sconce
