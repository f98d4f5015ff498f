// Products of float8 matrices with scales. Matches aten::_scaled_mm, torch 2.15.
#pragma once

#include <optional>

#include "sconce/tensor.h"

namespace sconce::cpu {

// self [M, K] and mat2 [K, N] of float8_e4m3fn or float8_e5m2, any strides; scale_a and scale_b float32: one value
// each, or [M, 1] and [1, N]. (self @ mat2) * scale_a * scale_b + bias [N], divided by scale_result where out_dtype
// is given and float8; rounded to out_dtype, any floating one (self's without one), what is too large for float8_e4m3fn
// being its largest number. Sums are float32. kInvalidArgument as ATen refuses.
Tensor _scaled_mm(const Tensor& self, const Tensor& mat2, const Tensor& scale_a, const Tensor& scale_b,
                  const Tensor* bias, const Tensor* scale_result, std::optional<DType> out_dtype, bool use_fast_accum);
// out of any layout.
void _scaled_mm_out(Tensor& out, const Tensor& self, const Tensor& mat2, const Tensor& scale_a, const Tensor& scale_b,
                    const Tensor* bias, const Tensor* scale_result, std::optional<DType> out_dtype,
                    bool use_fast_accum);

}  // namespace sconce::cpu
