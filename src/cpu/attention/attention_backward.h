// Gradients of attention. Match aten::_scaled_dot_product_flash_attention_for_cpu_backward (torch 2.15).
#pragma once

#include <array>
#include <optional>

#include "sconce/tensor.h"

namespace sconce::cpu {

// query, out and grad_out [B, H, Tq, D], key and value [B, Hkv, Tk, D] with H a multiple of Hkv, logsumexp [B, H, Tq]
// float32 (float64 for doubles), attn_mask bool or floating that broadcasts to [B, H, Tq, Tk]. Floating, any strides;
// half types are computed in float. Results by query, key and value, laid out [B, T, H, D]. dropout_p must be 0.
std::array<Tensor, 3> _scaled_dot_product_flash_attention_for_cpu_backward(
    const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& out,
    const Tensor& logsumexp, double dropout_p, bool is_causal, const Tensor* attn_mask, std::optional<double> scale);

}  // namespace sconce::cpu
