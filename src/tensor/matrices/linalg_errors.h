// Turns the report of a factorisation into an error. Matches aten::_linalg_check_errors, torch 2.15.
#pragma once

#include <string_view>

#include "sconce/tensor.h"

namespace sconce {

// info: int32, one number per matrix, 0 for success. kInvalidArgument "NAME: (Batch element 3): ..." for the first
// failure.
void _linalg_check_errors(const Tensor& info, std::string_view api_name, bool is_matrix);

}  // namespace sconce
