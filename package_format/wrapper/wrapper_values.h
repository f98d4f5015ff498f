// Finds valid values of a model's inputs in its generated source: indices within its checks, and divisors that are not
// zero. The values are used for dummy inputs; they are not proved, so nothing else relies on them.
#pragma once

#include <span>
#include <string_view>

#include "package_format/wrapper/wrapper_source.h"
#include "sconce/package.h"

namespace sconce {

// Fills TensorSpec::values of the inputs. kernels: texts that may define kernels of the CPU. The texts come from the
// package and may be hostile: the work is linear in their length.
//
// Follows an input from its load in a kernel, through conversions, sums and products with numbers, to a check of an
// index ("index out of bounds: 0 <= tmp7 < 32L") or an integer division; also to a call of embedding() in the graph,
// with a constant of known shape. Does not follow an index through a buffer between two kernels.
void find_values(const WrapperSource& source, std::span<const std::string_view> kernels, ModelSpec& spec);

}  // namespace sconce
