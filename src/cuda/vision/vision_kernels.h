// Kernels of torchvision's operators, for host code. dtype: c10::ScalarType; half, float and double, else
// cudaErrorNotSupported. Tensors are packed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "src/tensor/spatial/deform_taps.h"
#include "src/tensor/spatial/region_taps.h"

namespace sconce::cuda {

constexpr int kBoxesOfWord = 64;

// boxes [count, 4] in the order of their scores. overlaps [count, ceil(count / 64)]: bit b of word w of row i is set
// if box i suppresses box 64 * w + b, which comes after it; words before the row's own are not written.
cudaError_t launch_overlaps(int dtype, const void* boxes, int64_t count, float threshold, uint64_t* overlaps,
                            cudaStream_t stream);
// order: the boxes' indices. Writes the kept ones and their number. removed: ceil(count / 64) words, zero.
void launch_kept(const uint64_t* overlaps, const int64_t* order, int64_t count, uint64_t* removed, int64_t* kept,
                 int64_t* kept_count, cudaStream_t stream);

struct RegionCall {
  RegionGeometry geometry;
  int dtype;
  const void *input, *rois;
  void* out;
  int32_t* also;  // roi_pool: places; ps_roi_align, ps_roi_pool: channels
  int* noted;     // receives `note` for a region with an image outside the batch
  int note;
};
cudaError_t launch_roi_align(const RegionCall& call, cudaStream_t stream);
cudaError_t launch_roi_pool(const RegionCall& call, cudaStream_t stream);
cudaError_t launch_ps_roi_align(const RegionCall& call, cudaStream_t stream);
cudaError_t launch_ps_roi_pool(const RegionCall& call, cudaStream_t stream);

// The columns of `images` images: [images, channels * kernel, out_height * out_width]. mask: null for none.
cudaError_t launch_deformed_columns(const DeformGeometry& geometry, int dtype, int64_t images, const void* input,
                                    const void* offset, const void* mask, void* columns, cudaStream_t stream);

}  // namespace sconce::cuda
