// Functions of generated kernels and of the headers that they include (torch/csrc/inductor/cpp_prefix.h, ATen/cpu/vec).
#pragma once

#include <string_view>

namespace sconce::rows {

// Whether the result depends on the arguments alone, and only those may be written of which the address is passed. Of a
// vector, each lane depends on the same lanes of the arguments, unless crosses_lanes().
bool is_pure(std::string_view qualifier, std::string_view function);
bool is_pure_method(std::string_view function);
bool crosses_lanes(std::string_view function);
bool is_random(std::string_view function);

}  // namespace sconce::rows
