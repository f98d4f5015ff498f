#include "src/tensor/spatial/region_geometry.h"

#include "sconce/check.h"

namespace sconce {

RegionGeometry region_geometry(std::string_view name, const Tensor& input, const Tensor& rois, double spatial_scale,
                               int64_t pooled_height, int64_t pooled_width, bool by_position) {
  SCONCE_CHECK(input.dim() == 4, kInvalidArgument, name, ": input must have 4 dimensions, got ",
               to_string(input.sizes()));
  SCONCE_CHECK(rois.dim() == 2 && rois.size(1) == 5, kInvalidArgument, name,
               ": Tensor rois should have shape as Tensor[K, 5], got ", to_string(rois.sizes()));
  SCONCE_CHECK(input.dtype() == rois.dtype(), kInvalidArgument, name, ": input should have the same type as rois, got ",
               dtype_name(input.dtype()), " and ", dtype_name(rois.dtype()));
  constexpr int64_t kMost = int64_t{1} << 20;
  SCONCE_CHECK(pooled_height >= 0 && pooled_width >= 0 && pooled_height <= kMost && pooled_width <= kMost,
               kInvalidArgument, name, ": the pooled size must lie between 0 and ", kMost, ", got ", pooled_height,
               " by ", pooled_width);
  RegionGeometry g{rois.size(0),  input.size(0), input.size(1), input.size(1), input.size(2),
                   input.size(3), pooled_height, pooled_width,  spatial_scale};
  if (by_position) {
    const int64_t bins = pooled_height * pooled_width;
    SCONCE_CHECK(bins > 0, kInvalidArgument, name, ": the pooled size must not be 0");
    SCONCE_CHECK(g.channels % bins == 0, kInvalidArgument, name,
                 ": input channels must be a multiple of pooling height * pooling width, got ", g.channels, " and ",
                 pooled_height, " by ", pooled_width);
    g.channels_out = g.channels / bins;
  }
  return g;
}

Shape region_sizes(const RegionGeometry& g) {
  const int64_t sizes[] = {g.regions, g.channels_out, g.pooled_height, g.pooled_width};
  return Shape(sizes);
}

void fail_region_image(std::string_view name, int64_t region, double number, int64_t batch) {
  SCONCE_FAIL(kInvalidArgument, name, ": region ", region, " is of image ", number, ", but input has ", batch,
              " images");
}

void check_deform(const DeformTensors& tensors, DeformGeometry& g) {
  const auto& [input, weight, offset, mask, bias] = tensors;
  const auto four = [](const char* what, const Tensor& tensor) {
    SCONCE_CHECK(tensor.dim() == 4, kInvalidArgument, "deform_conv2d: ", what, " must have 4 dimensions, got ",
                 to_string(tensor.sizes()));
  };
  four("input", input);
  four("offset", offset);
  if (g.masked) four("mask", mask);
  four("weight", weight);
  const auto same = [&](const char* what, const Tensor& tensor) {
    SCONCE_CHECK(tensor.dtype() == input.dtype(), kInvalidArgument, "deform_conv2d: input is ",
                 dtype_name(input.dtype()), ", ", what, " is ", dtype_name(tensor.dtype()));
  };
  same("weight", weight);
  same("offset", offset);
  if (g.masked) same("mask", mask);
  same("bias", bias);

  g.batch = input.size(0);
  g.channels = input.size(1);
  g.height = input.size(2);
  g.width = input.size(3);
  g.out_channels = weight.size(0);
  g.kernel_height = weight.size(2);
  g.kernel_width = weight.size(3);
  SCONCE_CHECK(g.kernel_height > 0 && g.kernel_width > 0, kInvalidArgument,
               "deform_conv2d: weight_h: ", g.kernel_height, " weight_w: ", g.kernel_width);
  constexpr int64_t kMost = int64_t{1} << 30;  // products of two stay in range
  const auto bounded = [](int64_t least, const char* what, int64_t height, int64_t width) {
    SCONCE_CHECK(height >= least && width >= least && height <= kMost && width <= kMost, kInvalidArgument,
                 "deform_conv2d: ", what, "_h: ", height, " ", what, "_w: ", width);
  };
  bounded(1, "stride", g.stride_height, g.stride_width);
  bounded(0, "pad", g.pad_height, g.pad_width);
  bounded(1, "dilation", g.dilation_height, g.dilation_width);
  const auto out_size = [](int64_t size, int64_t pad, int64_t dilation, int64_t kernel, int64_t stride) {
    const int64_t room = size + 2 * pad - (dilation * (kernel - 1) + 1);
    return room < 0 ? 0 : room / stride + 1;
  };
  g.out_height = out_size(g.height, g.pad_height, g.dilation_height, g.kernel_height, g.stride_height);
  g.out_width = out_size(g.width, g.pad_width, g.dilation_width, g.kernel_width, g.stride_width);

  SCONCE_CHECK(g.groups > 0 && g.groups <= g.channels && weight.size(1) == g.channels / g.groups &&
                   g.channels % g.groups == 0 && g.out_channels % g.groups == 0,
               kInvalidArgument, "deform_conv2d: weight ", to_string(weight.sizes()), " and ", g.groups,
               " groups do not go with ", g.channels, " input channels");
  SCONCE_CHECK(g.offset_groups > 0 && g.offset_groups <= g.channels, kInvalidArgument,
               "deform_conv2d: ", g.offset_groups, " offset groups of ", g.channels, " input channels");
  const int64_t taps = g.offset_groups * g.kernel();
  SCONCE_CHECK(offset.size(1) == 2 * taps, kInvalidArgument,
               "deform_conv2d: offset.shape[1] is not valid: got: ", offset.size(1), " expected: ", 2 * taps);
  SCONCE_CHECK(!g.masked || mask.size(1) == taps, kInvalidArgument,
               "deform_conv2d: mask.shape[1] is not valid: got: ", mask.size(1), " expected: ", taps);
  SCONCE_CHECK(g.channels % g.offset_groups == 0, kInvalidArgument, "deform_conv2d: ", g.channels,
               " input channels are not divisible by ", g.offset_groups, " offset groups");
  SCONCE_CHECK(offset.size(0) == g.batch, kInvalidArgument, "deform_conv2d: invalid batch size of offset");
  const auto fits = [&](const char* what, const Tensor& tensor) {
    SCONCE_CHECK(tensor.size(2) == g.out_height && tensor.size(3) == g.out_width, kInvalidArgument,
                 "deform_conv2d: ", what, " output dims: (", tensor.size(2), ", ", tensor.size(3),
                 ") - computed output dims: (", g.out_height, ", ", g.out_width, ")");
  };
  fits("offset", offset);
  // torchvision passes a mask of the batch's size even if it is unused, and checks that.
  SCONCE_CHECK(mask.dim() > 0 && mask.size(0) == g.batch, kInvalidArgument,
               "deform_conv2d: invalid batch size of mask");
  if (g.masked) fits("mask", mask);
  SCONCE_CHECK(g.out_height > 0 && g.out_width > 0, kInvalidArgument,
               "deform_conv2d: Calculated output size too small - out_h: ", g.out_height, " out_w: ", g.out_width);
  SCONCE_CHECK(bias.numel() == g.out_channels, kInvalidArgument, "deform_conv2d: bias has ", bias.numel(),
               " elements, expected ", g.out_channels);
}

}  // namespace sconce
