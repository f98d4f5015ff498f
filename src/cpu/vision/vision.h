// torchvision's operators for detectors. Match torchvision::NAME (torchvision 0.29 with torch 2.15, CPU), which
// packages call by name.
//
// input [N, C, H, W]; rois [K, 5] of input's dtype: the image's number, then x1, y1, x2, y2, which spatial_scale
// converts to elements. Dtypes: float32, float64, and float16, whose arithmetic rounds after every operation (not
// nms). Any strides; row-major results. Kernels use the calling thread's team. kInvalidArgument; kUnsupported for
// dtypes. An image that input does not have is an error, where torchvision reads other memory.
#pragma once

#include <array>

#include "sconce/tensor.h"

namespace sconce::cpu {

// dets [K, 4]: x1, y1, x2, y2. scores [K]. Returns the indices of the boxes to keep [kept], int64, by descending
// score, equal scores in their order. A box is removed if its intersection over union with a kept box exceeds the
// threshold.
Tensor nms(const Tensor& dets, const Tensor& scores, double iou_threshold);

// [K, C, pooled_height, pooled_width]: means of bilinearly sampled points. sampling_ratio points along each side of a
// bin; if it is not positive, as many as the bin has elements. Without `aligned`, regions are not shifted by half an
// element and have at least one.
Tensor roi_align(const Tensor& input, const Tensor& rois, double spatial_scale, int64_t pooled_height,
                 int64_t pooled_width, int64_t sampling_ratio, bool aligned);
// Maxima [K, C, pooled_height, pooled_width], and where they lie in their plane, int32, -1 for none.
std::array<Tensor, 2> roi_pool(const Tensor& input, const Tensor& rois, double spatial_scale, int64_t pooled_height,
                               int64_t pooled_width);
// [K, C / (pooled_height * pooled_width), pooled_height, pooled_width]: each bin averages its own channel. Also
// returns the channels, int32.
std::array<Tensor, 2> ps_roi_align(const Tensor& input, const Tensor& rois, double spatial_scale, int64_t pooled_height,
                                   int64_t pooled_width, int64_t sampling_ratio);
std::array<Tensor, 2> ps_roi_pool(const Tensor& input, const Tensor& rois, double spatial_scale, int64_t pooled_height,
                                  int64_t pooled_width);

// A convolution whose taps are shifted by `offset` and, if use_mask, multiplied by `mask`; sizes in
// src/tensor/spatial/region_geometry.h.
Tensor deform_conv2d(const Tensor& input, const Tensor& weight, const Tensor& offset, const Tensor& mask,
                     const Tensor& bias, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w,
                     int64_t dilation_h, int64_t dilation_w, int64_t groups, int64_t offset_groups, bool use_mask);

}  // namespace sconce::cpu
