// Errors for failed checks in a package's own code.
#pragma once

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <string_view>

namespace sconce::aoti_abi {

// kModelFailed "WORDS (FUNCTION at FILE:LINE)", for faults::leave(), which can leave any function of a package.
std::exception_ptr failed_check(std::initializer_list<std::string_view> words, const char* function, const char* file,
                                uint32_t line);

}  // namespace sconce::aoti_abi
