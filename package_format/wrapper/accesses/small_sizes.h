// Finds out which sizes below a recorded minimum of 2 a model takes.
#pragma once

#include <span>
#include <string_view>

#include "package_format/wrapper/wrapper_source.h"
#include "sconce/package.h"

namespace sconce {

// Sets Dim::smallest of the inputs of a model for the CPU whose source was read. kernels: the source before run_impl,
// and the sources of its kernels.
void find_small_sizes(const WrapperSource& source, std::span<const std::string_view> kernels, ModelSpec& spec);

}  // namespace sconce
