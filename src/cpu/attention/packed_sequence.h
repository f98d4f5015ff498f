// Sequences of different lengths, step by step without their padding. Match aten::_pack_padded_sequence, torch 2.15.
#pragma once

#include <array>

#include "sconce/tensor.h"

namespace sconce::cpu {

// input [T, B, ...], or [B, T, ...] with batch_first, any dtype and strides; lengths int64 [B], descending, from 1 to
// T. Returns {[sum of lengths, ...]: at step t the elements of the sequences that have one; int64 [longest]: the
// number of these}.
std::array<Tensor, 2> _pack_padded_sequence(const Tensor& input, const Tensor& lengths, bool batch_first);

}  // namespace sconce::cpu
