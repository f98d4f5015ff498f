// Matches aten::repeat_interleave.Tensor (torch 2.15, CPU).
#pragma once

#include <optional>

#include "sconce/tensor.h"

namespace sconce::cpu {

// repeats[i] times the number i, for each i: 1-D, of the dtype of repeats (an integer type). output_size, where given,
// must be the sum of repeats.
Tensor repeat_interleave_Tensor(const Tensor& repeats, std::optional<int64_t> output_size);

}  // namespace sconce::cpu
