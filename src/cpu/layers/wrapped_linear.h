// The quantised and half-precision linear layers that PyTorch wraps for its compiler. Matches _quantized::
// _wrapped_linear_prepack, _wrapped_quantized_linear_prepacked, wrapped_fbgemm_pack_gemm_matrix_fp16 and
// wrapped_fbgemm_linear_fp16_weight, torch 2.15, on x86.
//
// A packed weight is a uint8 tensor that only these functions understand: a header, then the elements.
#pragma once

#include "sconce/tensor.h"

namespace sconce::cpu {

// weight float32 [N, K] to int8 with one scale and zero point; bias [N]. Scale and zero point have one element.
Tensor _wrapped_linear_prepack(const Tensor& weight, const Tensor& weight_scale, const Tensor& weight_zero_point,
                               const Tensor& bias);
// input float32 [..., K], quantised to uint8, times the packed weight, quantised to uint8 and back: float32
// [..., out_channel]. kInvalidArgument for what does not fit.
Tensor _wrapped_quantized_linear_prepacked(const Tensor& input, const Tensor& input_scale,
                                           const Tensor& input_zero_point, const Tensor& weight,
                                           const Tensor& out_scale, const Tensor& out_zeropoint, int64_t out_channel);

// weight float32 [N, K] to float16; what is too large for it becomes its largest number.
Tensor wrapped_fbgemm_pack_gemm_matrix_fp16(const Tensor& weight);
// input float32 [..., K], bias [N] or null: float32 [..., out_channel].
Tensor wrapped_fbgemm_linear_fp16_weight(const Tensor& input, const Tensor& weight, const Tensor* bias,
                                         int64_t out_channel);

// The same for a weight that oneDNN packed, float16 [K, N], as onednn::linear_dynamic_fp16 and
// linear_relu_dynamic_fp16: the input stays float32. Of both, a constant weight is kept as float32, too.
Tensor linear_dynamic_fp16(const Tensor& x, const Tensor& w, const Tensor* bias, bool relu);

}  // namespace sconce::cpu
