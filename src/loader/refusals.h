// Functions of torch's C interface that Sconce refuses on purpose, because a server cannot implement them. All other
// functions of torch's headers are implemented (tests/aoti_abi/abi_names_test.cpp compares).
#pragma once

#include <string_view>

namespace sconce::loader {

// A description of the function for "the model needs ..."; empty if it is not refused. Immutable.
std::string_view refusal_of(std::string_view symbol) noexcept;

}  // namespace sconce::loader
