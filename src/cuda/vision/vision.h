// torchvision's operators for detectors, called by name. Signatures follow src/cpu/vision/vision.h; they match
// torchvision::NAME (torchvision 0.29, CUDA). nms takes float16 too, whose areas are summed in float32.
#pragma once

#include <array>

#include "sconce/tensor.h"

namespace sconce::cuda {

// Waits for the number of boxes that are kept.
Tensor nms(const Tensor& dets, const Tensor& scores, double iou_threshold);
// A region of an image that input does not have fails the run when the stream has passed.
Tensor roi_align(const Tensor& input, const Tensor& rois, double spatial_scale, int64_t pooled_height,
                 int64_t pooled_width, int64_t sampling_ratio, bool aligned);
std::array<Tensor, 2> roi_pool(const Tensor& input, const Tensor& rois, double spatial_scale, int64_t pooled_height,
                               int64_t pooled_width);
std::array<Tensor, 2> ps_roi_align(const Tensor& input, const Tensor& rois, double spatial_scale, int64_t pooled_height,
                                   int64_t pooled_width, int64_t sampling_ratio);
std::array<Tensor, 2> ps_roi_pool(const Tensor& input, const Tensor& rois, double spatial_scale, int64_t pooled_height,
                                  int64_t pooled_width);
Tensor deform_conv2d(const Tensor& input, const Tensor& weight, const Tensor& offset, const Tensor& mask,
                     const Tensor& bias, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w,
                     int64_t dilation_h, int64_t dilation_w, int64_t groups, int64_t offset_groups, bool use_mask);

}  // namespace sconce::cuda
