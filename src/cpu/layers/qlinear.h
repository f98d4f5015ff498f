// The quantised linear layer of fbgemm.
#pragma once

#include "sconce/tensor.h"

namespace sconce {

// As _qlinear_pointwise_tensor, but the weight's zero point counts. To uint8.
Tensor fbgemm_linear(const Tensor& x, const Tensor& x_scale, const Tensor& x_zero_point, const Tensor& weight,
                     const Tensor& scale, const Tensor& zero_point, const Tensor& bias, double output_scale,
                     int64_t output_zero_point);

}  // namespace sconce
