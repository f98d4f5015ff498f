// Products of inputs that are quantised to 8 bits on the way with weights of 4 bits. Matches
// aten::_dyn_quant_pack_4bit_weight and _dyn_quant_matmul_4bit, torch 2.15, as they are on x86.
#pragma once

#include "sconce/tensor.h"

namespace sconce::cpu {

// weights uint8 [N, K / 2], two elements a byte, the even one in the low nibble; scales_zeros [N, K / block_size] and
// bias [N] of any floating dtype. Packed: float32, one after the other: the bytes' values, the scales, the bias.
Tensor _dyn_quant_pack_4bit_weight(const Tensor& weights, const Tensor& scales_zeros, const Tensor* bias,
                                   int64_t block_size, int64_t in_features, int64_t out_features);
// inp [M, in_features] float32, or bfloat16 where one block is the whole row: [M, out_features] of its dtype. A row is
// quantised with one scale and zero point; an element of the weight is (nibble - 8) * scale.
Tensor _dyn_quant_matmul_4bit(const Tensor& inp, const Tensor& packed_weights, int64_t block_size, int64_t in_features,
                              int64_t out_features);

}  // namespace sconce::cpu
