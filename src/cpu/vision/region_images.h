// Shared by roi_align, roi_pool and their position-sensitive forms.
#pragma once

#include <numeric>

#include "src/tensor/rows/planes.h"
#include "src/tensor/spatial/region_geometry.h"

namespace sconce::cpu {

// The image of each region, int64 [regions]; kInvalidArgument if the batch has no such image. rois is packed.
template <class T>
Tensor region_images(std::string_view name, const RegionGeometry& g, const Tensor& rois) {
  Tensor images = Tensor::empty(IntSpan(&g.regions, 1), DType::kInt64);
  for (int64_t region = 0; region < g.regions; ++region) {
    const T number = rois.data_as<T>()[5 * region];
    const int64_t image = region_image(number, g.batch);
    if (image < 0) fail_region_image(name, region, static_cast<double>(number), g.batch);
    images.data_as<int64_t>()[region] = image;
  }
  return images;
}

// The channel that each bin averages, int32 [regions, channels_out, pooled_height, pooled_width]: the same for all
// regions.
inline Tensor channel_mapping(const RegionGeometry& g) {
  Tensor mapping = Tensor::empty(region_sizes(g), DType::kInt32);
  int32_t* const out = mapping.data_as<int32_t>();
  for (int64_t region = 0; region < g.regions; ++region)
    std::iota(out + region * g.channels, out + (region + 1) * g.channels, 0);
  return mapping;
}

}  // namespace sconce::cpu
