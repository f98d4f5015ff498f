// Shared by kernels over regions of images: the bin that a thread computes.
#pragma once

#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/vision/vision_kernels.h"

namespace sconce::cuda {

// The bin that a thread computes.
template <class T>
struct Bin {
  __device__ Bin(const RegionCall& call, int64_t index) {
    const RegionGeometry& g = call.geometry;
    pw = index % g.pooled_width;
    ph = index / g.pooled_width % g.pooled_height;
    channel = index / g.pooled_width / g.pooled_height % g.channels_out;
    roi = static_cast<const T*>(call.rois) + 5 * (index / g.pooled_width / g.pooled_height / g.channels_out);
    image = region_image(roi[0], g.batch);
    if (image < 0) *call.noted = call.note;
  }
  __device__ const T* plane(const RegionCall& call, int64_t of_channel) const {
    const RegionGeometry& g = call.geometry;
    return static_cast<const T*>(call.input) + (image * g.channels + of_channel) * g.height * g.width;
  }
  int64_t pw, ph, channel, image;
  const T* roi;
};

inline int64_t bins_of(const RegionGeometry& g) {
  return g.regions * g.channels_out * g.pooled_height * g.pooled_width;
}

}  // namespace sconce::cuda
