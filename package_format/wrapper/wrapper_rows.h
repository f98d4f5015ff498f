// Which generated graphs join the rows of their batch: a tensor of a fixed size is made of all of them, and outputs are
// made of that. Amax over all rows for a common scale, a mean, a condition on a sum.
//
// A graph that does is found by the sizes of what it makes, not by what its kernels compute; one that joins rows within
// a kernel (a sort over the batch) is not found. So the answer can be yes, and else is not known.
#pragma once

#include <span>
#include <string_view>

#include "package_format/wrapper/wrapper_source.h"
#include "sconce/package.h"

namespace sconce {

// Sets ModelSpec::rows_joined and coarsest_buffer. The inputs' symbols are known. kernels: what comes before run_impl
// in the source, and the sources of its kernels.
void find_joined_rows(const WrapperSource& source, std::span<const std::string_view> kernels, ModelSpec& spec);

}  // namespace sconce
