// Finds in generated source which values of inputs a model takes: indices that its checks let pass, and divisors that
// are not zero. What is found serves inputs that nobody sent; it is no proof, so nothing relies on it.
#pragma once

#include <span>
#include <string_view>

#include "package_format/wrapper/wrapper_source.h"
#include "sconce/package.h"

namespace sconce {

// Fills TensorSpec::values of the inputs. kernels: texts that may define kernels of the CPU. The texts come from the
// package and may be hostile: the work is linear in them.
//
// Follows an input from where a kernel loads it, through conversions, sums and products with numbers, to a check of an
// index ("index out of bounds: 0 <= tmp7 < 32L") or an integer division; and where the graph calls embedding() with an
// input and a constant of known shape. An index that a buffer between two kernels carries is not followed.
void find_values(const WrapperSource& source, std::span<const std::string_view> kernels, ModelSpec& spec);

}  // namespace sconce
