// Low-pass resizing, called by name only. Signatures follow src/cpu/pooling/resample_antialias.h.
#pragma once

#include <optional>

#include "sconce/tensor.h"

namespace sconce::cuda {

Tensor _upsample_bilinear2d_aa(const Tensor& self, IntSpan output_size, bool align_corners,
                               std::optional<double> scales_h, std::optional<double> scales_w);
Tensor _upsample_bilinear2d_aa_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                        bool align_corners, std::optional<double> scales_h,
                                        std::optional<double> scales_w);
Tensor _upsample_bicubic2d_aa(const Tensor& self, IntSpan output_size, bool align_corners,
                              std::optional<double> scales_h, std::optional<double> scales_w);
Tensor _upsample_bicubic2d_aa_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                       bool align_corners, std::optional<double> scales_h,
                                       std::optional<double> scales_w);
Tensor _upsample_lanczos2d_aa(const Tensor& self, IntSpan output_size, bool align_corners,
                              std::optional<double> scales_h, std::optional<double> scales_w);
Tensor _upsample_lanczos2d_aa_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                       bool align_corners, std::optional<double> scales_h,
                                       std::optional<double> scales_w);

}  // namespace sconce::cuda
