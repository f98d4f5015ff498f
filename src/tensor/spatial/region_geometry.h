// Arguments of operators over regions of images, checked. For every device; see region_taps.h.
#pragma once

#include <string_view>

#include "src/tensor/spatial/deform_taps.h"
#include "src/tensor/spatial/region_taps.h"
#include "src/tensor/strided_loop.h"

namespace sconce {

// kInvalidArgument "NAME: ..." for ranks, sizes and dtypes that do not fit. by_position: each bin has channels of its
// own, as in ps_roi_align and ps_roi_pool.
RegionGeometry region_geometry(std::string_view name, const Tensor& input, const Tensor& rois, double spatial_scale,
                               int64_t pooled_height, int64_t pooled_width, bool by_position);
Shape region_sizes(const RegionGeometry& geometry);
// The error for a region whose image the batch does not have. `number` is the image's.
[[noreturn]] void fail_region_image(std::string_view name, int64_t region, double number, int64_t batch);

struct DeformTensors {
  const Tensor &input, &weight, &offset, &mask, &bias;
};
// kInvalidArgument "deform_conv2d: ..." for arguments that do not fit. Sizes of strides, padding and so on come in g.
void check_deform(const DeformTensors& tensors, DeformGeometry& g);

}  // namespace sconce
