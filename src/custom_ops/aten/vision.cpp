// torchvision's operators, which detectors call by name.
#include "src/cpu/vision/vision.h"

#include "src/custom_ops/aten/aten.h"
#include "src/custom_ops/operator/boxed.h"

namespace sconce::custom_ops {
namespace {

// clang-format off
constexpr AtenRow kRows[] = {
    {"torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor", boxed<cpu::deform_conv2d>},
    {"torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", boxed<cpu::nms>},
    {"torchvision::ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio) -> (Tensor, Tensor)", boxed<cpu::ps_roi_align>},
    {"torchvision::ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)", boxed<cpu::ps_roi_pool>},
    {"torchvision::roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor", boxed<cpu::roi_align>},
    {"torchvision::roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)", boxed<cpu::roi_pool>},
};
// clang-format on

}  // namespace

std::span<const AtenRow> vision_rows() { return kRows; }

}  // namespace sconce::custom_ops
