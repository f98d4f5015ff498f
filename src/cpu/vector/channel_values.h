// Scales, zero points and biases in the form of operator arguments: one number, or one per channel.
#pragma once

#include <cstdint>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce {

// A tensor's single value; `otherwise` for an undefined or empty one. kInvalidArgument "NAME: WHAT ..." for more.
double single_value(std::string_view name, const Tensor& tensor, const char* what, double otherwise);
// float32 [n] from n values or one, of any real dtype.
Tensor channel_values(std::string_view name, const Tensor& tensor, int64_t n, const char* what);

}  // namespace sconce
