// The arguments of grid_sampler and of its gradients, checked. Match ATen, torch 2.15.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "src/tensor/spatial/grid_taps.h"
#include "src/tensor/strided_loop.h"

namespace sconce {

// dims: 2 or 3. kInvalidArgument "NAME: ..."; kUnsupported for dtypes.
GridGeometry grid_geometry(std::string_view name, const Tensor& input, const Tensor& grid, int64_t interpolation,
                           int64_t padding, bool align_corners, int dims);
// Sizes of the result.
Shape grid_sampled_sizes(const Tensor& input, const Tensor& grid);
void check_grid_gradient(std::string_view name, const Tensor& grad_output, const Tensor& input, IntSpan sizes,
                         std::span<const int32_t> output_mask);

}  // namespace sconce
