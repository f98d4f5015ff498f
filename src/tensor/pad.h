// Padding by a constant, by reflection, by the border's value or around the other side.
#pragma once

#include <optional>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce::cpu {

// pad: pairs (before, after) from the last dimension on; negative ones crop. mode: "constant" (any number of
// dimensions; value defaults to 0), "reflect", "replicate" (no bool), "circular" (those three: the last 1, 2 or 3
// dimensions of a tensor with one or two more). Channels-last stays so, but for "circular". Any dtype, any strides,
// any device. Matches at::pad on the CPU, torch 2.15.
Tensor pad(const Tensor& self, IntSpan pad, std::string_view mode, std::optional<double> value);

}  // namespace sconce::cpu
