// Calls and lists in generated C++. Results are views of the caller's text.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "package_format/text/source_text.h"
#include "sconce/dtype.h"

namespace sconce {

// Splits "a, f(b, c), {d, }" at its outer commas and drops empty parts.
std::vector<std::string_view> split_arguments(std::string_view text);

// Removes the bracketed text at the front of `text` and returns its content. nullopt if there is no bracket at the
// front or it is not closed. Brackets inside strings do not count.
std::optional<std::string_view> skip_bracketed(std::string_view& text);

// "const float" -> float32, "at::BFloat16" -> bfloat16.
std::optional<DType> cpp_dtype(std::string_view type);

}  // namespace sconce
