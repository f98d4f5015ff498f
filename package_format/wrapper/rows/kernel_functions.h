// Functions of generated kernels and of their headers (torch/csrc/inductor/cpp_prefix.h, ATen/cpu/vec).
#pragma once

#include <string_view>

namespace sconce::rows {

// Whether the result depends on the arguments alone, and the function writes only arguments passed by address. In a
// vector, each SIMD lane depends on the same lane of the arguments, unless crosses_lanes().
bool is_pure(std::string_view qualifier, std::string_view function);
bool is_pure_method(std::string_view function);
bool crosses_lanes(std::string_view function);
bool is_random(std::string_view function);

}  // namespace sconce::rows
