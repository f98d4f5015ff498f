// Checks arguments of operators over regions of images. For every device; see region_taps.h.
#pragma once

#include <string_view>

#include "src/tensor/spatial/deform_taps.h"
#include "src/tensor/spatial/region_taps.h"
#include "src/tensor/strided_loop.h"

namespace sconce {

// kInvalidArgument "NAME: ..." for wrong ranks, sizes and dtypes. by_position: each bin has its own channels, as in
// ps_roi_align and ps_roi_pool.
RegionGeometry region_geometry(std::string_view name, const Tensor& input, const Tensor& rois, double spatial_scale,
                               int64_t pooled_height, int64_t pooled_width, bool by_position);
Shape region_sizes(const RegionGeometry& geometry);
// The error for a region with an image number outside the batch. `number` is that number.
[[noreturn]] void fail_region_image(std::string_view name, int64_t region, double number, int64_t batch);

struct DeformTensors {
  const Tensor &input, &weight, &offset, &mask, &bias;
};
// kInvalidArgument "deform_conv2d: ..." for invalid arguments. The caller sets strides, padding and so on in g.
void check_deform(const DeformTensors& tensors, DeformGeometry& g);

}  // namespace sconce
