// Checks the arguments of a resize and of its gradient. Match ATen, torch 2.15. kInvalidArgument "NAME: ...";
// kUnsupported for dtypes.
#pragma once

#include <array>
#include <string_view>

#include "sconce/tensor.h"
#include "src/tensor/spatial/resample_taps.h"

namespace sconce {

// For the gradient. Axes are depth, height, width; with fewer dimensions the first ones are 1.
std::array<ResampledAxis, 3> resized_axes(std::string_view name, const Tensor& grad_output, IntSpan output_size,
                                          IntSpan input_size, const std::array<OptScale, 3>& scales, int dims);
// How each axis depends on the input.
using ResampleModes = std::array<ResampleMode, 3>;
ResampleModes resample_modes(const std::array<ResampledAxis, 3>& axes, int dims, ResampleMode mode) noexcept;

}  // namespace sconce
