// The quantised and half-precision linear layers that PyTorch wraps for its compiler. Matches _quantized::
// _wrapped_linear_prepack, _wrapped_quantized_linear_prepacked, wrapped_fbgemm_pack_gemm_matrix_fp16 and
// wrapped_fbgemm_linear_fp16_weight, torch 2.15, on x86.
//
// A packed weight is a uint8 tensor that only these functions understand: a header, then the elements.
#pragma once

#include "sconce/tensor.h"

namespace sconce::cpu {

// onednn::linear_dynamic_fp16 and linear_relu_dynamic_fp16: as wrapped_fbgemm_linear_fp16_weight, for a float16 [K, N]
// weight that oneDNN packed. The input stays float32. A constant weight is also cached as float32.
Tensor linear_dynamic_fp16(const Tensor& x, const Tensor& w, const Tensor* bias, bool relu);

}  // namespace sconce::cpu
