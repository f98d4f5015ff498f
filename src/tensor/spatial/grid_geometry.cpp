#include "src/tensor/spatial/grid_geometry.h"

#include <algorithm>

#include "sconce/check.h"
#include "src/tensor/elements/dispatch.h"

namespace sconce {

GridGeometry grid_geometry(std::string_view name, const Tensor& input, const Tensor& grid, int64_t interpolation,
                           int64_t padding, bool align_corners, int dims) {
  SCONCE_CHECK(input.dim() == dims + 2 && grid.dim() == dims + 2, kInvalidArgument, name,
               ": expected input and grid of ", dims + 2, " dimensions, but got input with sizes ",
               to_string(input.sizes()), " and grid with sizes ", to_string(grid.sizes()));
  SCONCE_CHECK(input.size(0) == grid.size(0), kInvalidArgument, name,
               ": expected grid and input to have same batch size, but got input with sizes ", to_string(input.sizes()),
               " and grid with sizes ", to_string(grid.sizes()));
  SCONCE_CHECK(grid.size(dims + 1) == dims, kInvalidArgument, name, ": expected grid to have size ", dims,
               " in last dimension, but got grid with sizes ", to_string(grid.sizes()));
  SCONCE_CHECK(input.dtype() == grid.dtype(), kInvalidArgument, name,
               ": expected input and grid to have same dtype, but input has ", dtype_name(input.dtype()),
               " and grid has ", dtype_name(grid.dtype()));
  for (int64_t d = 2; d < input.dim(); ++d)
    SCONCE_CHECK(input.size(d) > 0, kInvalidArgument, name,
                 ": expected input to have non-empty spatial dimensions, but input has sizes ",
                 to_string(input.sizes()));
  SCONCE_CHECK(interpolation >= 0 && interpolation <= 2, kInvalidArgument, name, ": interpolation mode ", interpolation,
               " is not supported");
  SCONCE_CHECK(padding >= 0 && padding <= 2, kInvalidArgument, name, ": padding mode ", padding, " is not known");
  if (!is_floating(input.dtype())) fail_dispatch(input.dtype(), name);
  GridGeometry g{dims,
                 input.size(0),
                 input.size(1),
                 1,
                 1,
                 {1, 1, 1},
                 {1, 1, 1},
                 static_cast<GridInterpolation>(interpolation),
                 static_cast<GridPadding>(padding),
                 align_corners};
  for (int d = 0; d < dims; ++d) {
    g.size[d] = input.size(input.dim() - 1 - d);
    g.step[d] = g.in_plane;
    g.in_plane *= g.size[d];
    g.out_plane *= grid.size(1 + d);
  }
  return g;
}

Shape grid_sampled_sizes(const Tensor& input, const Tensor& grid) {
  Shape sizes(grid.sizes());
  sizes.resize(1);
  sizes.push_back(input.size(1));
  for (int64_t d = 1; d + 1 < grid.dim(); ++d) sizes.push_back(grid.size(d));
  return sizes;
}

void check_grid_gradient(std::string_view name, const Tensor& grad_output, const Tensor& input, IntSpan sizes,
                         std::span<const int32_t> output_mask) {
  SCONCE_CHECK(grad_output.dtype() == input.dtype() &&
                   std::equal(grad_output.sizes().begin(), grad_output.sizes().end(), sizes.begin(), sizes.end()),
               kInvalidArgument, name, ": expected grad_output of sizes ", to_string(sizes), ", got ",
               describe(grad_output));
  SCONCE_CHECK(output_mask.size() == 2, kInvalidArgument, name, ": output_mask must hold 2 flags");
}

}  // namespace sconce
