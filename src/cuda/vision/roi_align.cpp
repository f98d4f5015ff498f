#include "src/cuda/vision/region_calls.h"
#include "src/cuda/vision/vision.h"

namespace sconce::cuda {

Tensor roi_align(const Tensor& input, const Tensor& rois, double spatial_scale, int64_t pooled_height,
                 int64_t pooled_width, int64_t sampling_ratio, bool aligned) {
  RegionGeometry g = region_geometry("roi_align", input, rois, spatial_scale, pooled_height, pooled_width, false);
  g.sampling_ratio = sampling_ratio;
  g.aligned = aligned;
  return over_regions("roi_align_forward_kernel", launch_roi_align, g, input, rois, false)[0];
}

std::array<Tensor, 2> ps_roi_align(const Tensor& input, const Tensor& rois, double spatial_scale, int64_t pooled_height,
                                   int64_t pooled_width, int64_t sampling_ratio) {
  RegionGeometry g = region_geometry("ps_roi_align", input, rois, spatial_scale, pooled_height, pooled_width, true);
  g.sampling_ratio = sampling_ratio;
  return over_regions("ps_roi_align_forward_kernel", launch_ps_roi_align, g, input, rois, true);
}

}  // namespace sconce::cuda
