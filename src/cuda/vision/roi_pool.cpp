#include "src/cuda/vision/region_calls.h"
#include "src/cuda/vision/vision.h"

namespace sconce::cuda {

std::array<Tensor, 2> roi_pool(const Tensor& input, const Tensor& rois, double spatial_scale, int64_t pooled_height,
                               int64_t pooled_width) {
  const RegionGeometry g = region_geometry("roi_pool", input, rois, spatial_scale, pooled_height, pooled_width, false);
  return over_regions("roi_pool_forward_kernel", launch_roi_pool, g, input, rois, true);
}

std::array<Tensor, 2> ps_roi_pool(const Tensor& input, const Tensor& rois, double spatial_scale, int64_t pooled_height,
                                  int64_t pooled_width) {
  const RegionGeometry g =
      region_geometry("ps_roi_pool", input, rois, spatial_scale, pooled_height, pooled_width, true);
  return over_regions("ps_roi_pool_forward_kernel", launch_ps_roi_pool, g, input, rois, true);
}

}  // namespace sconce::cuda
