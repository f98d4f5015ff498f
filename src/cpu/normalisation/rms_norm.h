// Root mean square normalisation. Matches aten::_fused_rms_norm, torch 2.15.
#pragma once

#include <array>
#include <optional>

#include "sconce/tensor.h"

namespace sconce::cpu {

// input of a floating or complex dtype, any strides, over its last normalized_shape.size() dimensions (all, if that is
// none): input * rsqrt(mean(input ^ 2) + eps) * weight, and the reciprocal roots, those dimensions being 1, in float32
// for the small floats. weight has the normalised dimensions, any dtype. eps: without one, float32's (float64's for
// float64). The output in the input's memory format, the roots contiguous. kUnsupported for other dtypes.
std::array<Tensor, 2> _fused_rms_norm(const Tensor& input, IntSpan normalized_shape, const Tensor* weight,
                                      std::optional<double> eps);

}  // namespace sconce::cpu
