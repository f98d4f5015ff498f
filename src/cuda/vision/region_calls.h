// Calls of kernels over regions of images.
#pragma once

#include <array>

#include "src/cuda/vision/vision_kernels.h"
#include "src/tensor/spatial/region_geometry.h"

namespace sconce::cuda {

using RegionLaunch = cudaError_t (*)(const RegionCall&, cudaStream_t);

// Results: means or maxima, then positions or channels (undefined unless requested by `also`). A region of an image
// that input does not have is noted.
std::array<Tensor, 2> over_regions(const char* name, RegionLaunch launch, const RegionGeometry& geometry,
                                   const Tensor& input, const Tensor& rois, bool also);

}  // namespace sconce::cuda
