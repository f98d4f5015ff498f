// Functions of torch's C interface that are refused on purpose, because a server cannot fulfil them. Everything else
// that torch's headers declare is implemented (tests/aoti_abi/abi_names_test.cpp compares).
#pragma once

#include <string_view>

namespace sconce::loader {

// What the function is, for "the model needs ..."; empty if it is not refused. Immutable.
std::string_view refusal_of(std::string_view symbol) noexcept;

}  // namespace sconce::loader
