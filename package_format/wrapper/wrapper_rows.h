// Finds generated graphs that join the rows of their batch: a fixed-size tensor is computed from all rows, and outputs
// from that tensor. Examples: amax over all rows for a common scale, a mean, a condition on a sum.
//
// It looks at the sizes of results, not at what kernels compute, so it misses a graph that joins rows within a kernel
// (a sort over the batch). The answer is therefore "yes" or "unknown".
#pragma once

#include <span>
#include <string_view>

#include "package_format/wrapper/wrapper_source.h"
#include "sconce/package.h"

namespace sconce {

// Sets ModelSpec::rows_joined and coarsest_buffer. The inputs' symbols are known. kernels: the source before run_impl,
// and the sources of its kernels.
void find_joined_rows(const WrapperSource& source, std::span<const std::string_view> kernels, ModelSpec& spec);

}  // namespace sconce
