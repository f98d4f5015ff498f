// The fused layers of PyTorch's transformer encoder, without gradients. Match aten::_transform_bias_rescale_qkv,
// _native_multi_head_attention and _transformer_encoder_layer_fwd (torch 2.15, CPU, dense tensors). B batch, T tokens,
// D features, H heads. Floating dtypes, any strides. kInvalidArgument for sizes.
#pragma once

#include <array>
#include <optional>

#include "sconce/tensor.h"

namespace sconce::cpu {

// qkv [B, T, 3 D] plus bias [3 D] as three tensors [B, H, T, D / H]; the first divided by the root of D / H.
std::array<Tensor, 3> _transform_bias_rescale_qkv(const Tensor& qkv, const Tensor& qkv_bias, int64_t num_heads);

// {output [B, T, D], weights [B, T, T], or [B, H, T, T] unless averaged; undefined unless needed}. mask and mask_type
// as of _masked_softmax.
std::array<Tensor, 2> _native_multi_head_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                                   int64_t embed_dim, int64_t num_head, const Tensor& qkv_weight,
                                                   const Tensor& qkv_bias, const Tensor& proj_weight,
                                                   const Tensor& proj_bias, const Tensor* mask, bool need_weights,
                                                   bool average_attn_weights, std::optional<int64_t> mask_type);

Tensor _transformer_encoder_layer_fwd(const Tensor& src, int64_t embed_dim, int64_t num_heads, const Tensor& qkv_weight,
                                      const Tensor& qkv_bias, const Tensor& proj_weight, const Tensor& proj_bias,
                                      bool use_gelu, bool norm_first, double eps, const Tensor& norm_weight_1,
                                      const Tensor& norm_bias_1, const Tensor& norm_weight_2, const Tensor& norm_bias_2,
                                      const Tensor& ffn_weight_1, const Tensor& ffn_bias_1, const Tensor& ffn_weight_2,
                                      const Tensor& ffn_bias_2, const Tensor* mask, std::optional<int64_t> mask_type);

}  // namespace sconce::cpu
