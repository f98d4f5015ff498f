// Resampling of planes with a low-pass filter where they shrink. Matches aten::_upsample_bilinear2d_aa,
// _upsample_bicubic2d_aa, _upsample_lanczos2d_aa and the gradients (torch 2.15, CPU).
//
// self [N, C, H, W], any strides; uint8, whose weights are of 16 bits as there, or a floating dtype. Results
// channels-last where self is, else row-major, as the bicubic gradient always is. Scales, where given, tell the ratio
// of the sizes. kInvalidArgument.
#pragma once

#include <optional>

#include "sconce/tensor.h"
#include "src/cpu/pooling/resample_lines.h"

namespace sconce::cpu {

enum class LowPass { kBilinear, kBicubic, kLanczos };
// What an element of a line of `to` draws on of one of `from`. Positions are computed in the dtype, of half types in
// float32.
LineWindows low_pass_windows(LowPass filter, DType dtype, int64_t from, int64_t to, bool align_corners,
                             std::optional<double> scale);
// The arguments of the operators and of their gradients.
void check_low_pass(LowPass filter, const Tensor& self, IntSpan output_size);
void check_low_pass_gradient(LowPass filter, const Tensor& grad_output, IntSpan output_size, IntSpan input_size);

Tensor _upsample_bilinear2d_aa(const Tensor& self, IntSpan output_size, bool align_corners,
                               std::optional<double> scales_h, std::optional<double> scales_w);
Tensor _upsample_bicubic2d_aa(const Tensor& self, IntSpan output_size, bool align_corners,
                              std::optional<double> scales_h, std::optional<double> scales_w);
Tensor _upsample_lanczos2d_aa(const Tensor& self, IntSpan output_size, bool align_corners,
                              std::optional<double> scales_h, std::optional<double> scales_w);
Tensor _upsample_bilinear2d_aa_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                        bool align_corners, std::optional<double> scales_h,
                                        std::optional<double> scales_w);
Tensor _upsample_bicubic2d_aa_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                       bool align_corners, std::optional<double> scales_h,
                                       std::optional<double> scales_w);
Tensor _upsample_lanczos2d_aa_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                       bool align_corners, std::optional<double> scales_h,
                                       std::optional<double> scales_w);

}  // namespace sconce::cpu
