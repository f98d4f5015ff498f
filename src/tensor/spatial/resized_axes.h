// The arguments of a resize and of its gradient, checked. Match ATen, torch 2.15. kInvalidArgument "NAME: ...";
// kUnsupported for dtypes.
#pragma once

#include <array>
#include <string_view>

#include "sconce/tensor.h"
#include "src/tensor/spatial/resample_taps.h"

namespace sconce {

// Of the gradient. Axes are depth, height, width; of fewer dimensions the first are 1.
std::array<ResampledAxis, 3> resized_axes(std::string_view name, const Tensor& grad_output, IntSpan output_size,
                                          IntSpan input_size, const std::array<OptScale, 3>& scales, int dims);
// How each axis draws on the input.
using ResampleModes = std::array<ResampleMode, 3>;
ResampleModes resample_modes(const std::array<ResampledAxis, 3>& axes, int dims, ResampleMode mode) noexcept;

}  // namespace sconce
