// Embedding tables of bytes, each row followed by its scale and offset: uint8 [rows, D + 8]. Match
// quantized::embedding_bag_byte_prepack, _unpack and _rowwise_offsets, torch 2.15.
#pragma once

#include "sconce/tensor.h"

namespace sconce::cpu {

// float32 or float16 [..., D] to uint8 [..., D + 8].
Tensor embedding_bag_byte_prepack(const Tensor& weight);
// float32 [..., D].
Tensor embedding_bag_byte_unpack(const Tensor& weight);

// Sums of rows, regardless of the mode, as in ATen: float32 [bags, D]. indices int32 or int64, [N] with offsets of the
// same dtype, or [bags, N / bags] without; per_sample_weights float32 [N]. With pruned_weights and a mapping (int32),
// index i means row mapping[i], and -1 means none. kInvalidArgument for indices out of range and wrong arguments.
Tensor embedding_bag_byte_rowwise_offsets(const Tensor& weight, const Tensor& indices, const Tensor* offsets,
                                          bool scale_grad_by_freq, int64_t mode, bool pruned_weights,
                                          const Tensor* per_sample_weights, const Tensor* compressed_indices_mapping,
                                          bool include_last_offset);

}  // namespace sconce::cpu
