#include <algorithm>

#include "src/cuda/elementwise/elementwise.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/cuda/vision/vision.h"
#include "src/cuda/vision/vision_kernels.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/spatial/region_geometry.h"

namespace sconce::cuda {
namespace {

constexpr int64_t kColumnsBytes = int64_t{128} << 20;  // of the images that are sampled at once

// [images, groups, rows, columns] of a packed tensor, without group `group`'s neighbours: [images, rows, columns].
Tensor group_of(const Tensor& packed, int64_t images, int64_t groups, int64_t group, int64_t rows, int64_t columns) {
  const int64_t sizes[] = {images, rows, columns}, strides[] = {groups * rows * columns, columns, 1};
  return packed.as_strided(sizes, strides, packed.storage_offset() + group * rows * columns);
}

}  // namespace

Tensor deform_conv2d(const Tensor& input, const Tensor& weight, const Tensor& offset, const Tensor& mask,
                     const Tensor& bias, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w,
                     int64_t dilation_h, int64_t dilation_w, int64_t groups, int64_t offset_groups, bool use_mask) {
  DeformGeometry g{};
  g.stride_height = stride_h;
  g.stride_width = stride_w;
  g.pad_height = pad_h;
  g.pad_width = pad_w;
  g.dilation_height = dilation_h;
  g.dilation_width = dilation_w;
  g.groups = groups;
  g.offset_groups = offset_groups;
  g.masked = use_mask;
  check_deform({input, weight, offset, mask, bias}, g);
  for (const Tensor* tensor : {&weight, &offset, &mask, &bias})
    SCONCE_CHECK(tensor->device() == input.device(), kInvalidArgument, "deform_conv2d: input is on ",
                 to_string(input.device()), ", another tensor on ", to_string(tensor->device()));
  const DeviceScope scope(input.device());
  const int64_t sizes[] = {g.batch, g.out_channels, g.out_height, g.out_width};
  const Tensor out = Tensor::empty(sizes, input.dtype(), input.device());
  if (out.numel() == 0) return out;
  const Tensor in = cuda::contiguous(input), weights = cuda::contiguous(weight), offsets = cuda::contiguous(offset);
  const Tensor masks = use_mask ? cuda::contiguous(mask) : mask;
  const int64_t plane = g.out_plane(), rows = g.channels * g.kernel(), taps = g.offset_groups * g.kernel();
  const auto item = static_cast<int64_t>(input.itemsize());
  const int64_t most = std::clamp<int64_t>(kColumnsBytes / std::max<int64_t>(rows * plane * item, 1), 1, g.batch);
  const int64_t columns_size[] = {most, rows, plane};
  const Tensor columns = Tensor::empty(columns_size, input.dtype(), input.device());
  const auto at = [item](const Tensor& tensor, int64_t elements) {
    return static_cast<const std::byte*>(tensor.data()) + elements * item;
  };
  const int64_t m = g.out_channels / g.groups, k = rows / g.groups;
  for (int64_t first = 0; first < g.batch; first += most) {
    const int64_t images = std::min(most, g.batch - first);
    check_launch(
        "deformable_im2col",
        launch_deformed_columns(g, static_cast<int>(input.dtype()), images,
                                at(in, first * g.channels * g.height * g.width), at(offsets, first * 2 * taps * plane),
                                use_mask ? at(masks, first * taps * plane) : nullptr, columns.data(), current_stream()),
        input.dtype());
    for (int64_t group = 0; group < g.groups; ++group) {
      const int64_t weight_sizes[] = {images, m, k}, weight_strides[] = {0, k, 1};
      const Tensor w = weights.as_strided(weight_sizes, weight_strides, weights.storage_offset() + group * m * k);
      const int64_t out_sizes[] = {images, m, plane}, out_strides[] = {g.out_channels * plane, plane, 1};
      Tensor to = out.as_strided(out_sizes, out_strides, (first * g.out_channels + group * m) * plane);
      bmm_out(to, w, group_of(columns, images, g.groups, group, k, plane));
    }
  }
  const int64_t bias_sizes[] = {g.out_channels, 1, 1}, bias_strides[] = {bias.dim() ? bias.stride(0) : 1, 1, 1};
  return add(out, bias.as_strided(bias_sizes, bias_strides, bias.storage_offset()), int64_t{1});
}

}  // namespace sconce::cuda
