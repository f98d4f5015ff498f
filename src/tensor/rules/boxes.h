// Checks arguments of operators over boxes. For every device.
#pragma once

#include <string_view>

#include "sconce/tensor.h"

namespace sconce {

// dets [K, 4], scores [K]. kInvalidArgument "NAME: ..." for other ranks and sizes.
void check_boxes(std::string_view name, const Tensor& dets, const Tensor& scores);

}  // namespace sconce
