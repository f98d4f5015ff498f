// Dropout on PyTorch's random stream.
#pragma once

#include <array>
#include <optional>

#include "sconce/tensor.h"

namespace sconce::cpu {

// input * mask / (1 - p), and the mask: bool, one where an element is kept. Any floating or complex dtype; dense
// inputs keep their strides. train: null counts as true; false gives a copy and a mask of ones. Without elements: the
// input itself and a mask of its own dtype, as ATen. Matches aten::native_dropout on the CPU, torch 2.15.
std::array<Tensor, 2> native_dropout(const Tensor& input, double p, std::optional<bool> train);

}  // namespace sconce::cpu
