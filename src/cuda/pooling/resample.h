// Low-pass resizing, called by name only. Results follow src/cpu/pooling/resample_antialias.h.
#pragma once

#include "src/tensor/spatial/low_pass.h"

namespace sconce::cuda {

Tensor low_pass(LowPass filter, const Tensor& self, IntSpan output_size, bool align_corners, OptScale scales_h,
                OptScale scales_w);
Tensor low_pass_backward(LowPass filter, const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                         bool align_corners, OptScale scales_h, OptScale scales_w);

// The operators of one filter.
template <LowPass kFilter>
Tensor upsample_aa(const Tensor& self, IntSpan output_size, bool align_corners, OptScale scales_h, OptScale scales_w) {
  return low_pass(kFilter, self, output_size, align_corners, scales_h, scales_w);
}
template <LowPass kFilter>
Tensor upsample_aa_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size, bool align_corners,
                            OptScale scales_h, OptScale scales_w) {
  return low_pass_backward(kFilter, grad_output, output_size, input_size, align_corners, scales_h, scales_w);
}

}  // namespace sconce::cuda
