// roi_pool and ps_roi_pool.
#include <limits>

#include "src/cpu/vision/region_images.h"
#include "src/cpu/vision/vision.h"
#include "src/cpu/vision/vision_dtypes.h"

namespace sconce::cpu {
namespace {

// The windows of all bins of all regions along one axis, as int64 [regions, pooled, 2].
template <class T>
class WindowLists {
 public:
  WindowLists(const RegionGeometry& g, const T* rois, int corner, int64_t pooled, bool closed, int64_t limit)
      : pooled_(pooled) {
    const int64_t sizes[] = {g.regions, pooled, 2};
    windows_ = Tensor::empty(sizes, DType::kInt64);
    auto* next = windows_.data_as<RegionWindow>();
    for (int64_t region = 0; region < g.regions; ++region)
      for (int64_t bin = 0; bin < pooled; ++bin)
        *next++ = region_window(g.scale, rois[5 * region + corner], rois[5 * region + corner + 2], pooled, closed,
                                limit, bin);
  }
  const RegionWindow& bin(int64_t region, int64_t bin) const noexcept {
    return windows_.data_as<RegionWindow>()[region * pooled_ + bin];
  }

 private:
  int64_t pooled_;
  Tensor windows_;
};

// The greatest element above -FLT_MAX, as in torchvision whatever the dtype, and the first place where it is.
template <class T>
void greatest(const T* plane, int64_t width, const RegionWindow& rows, const RegionWindow& columns, T& value,
              int32_t& at) noexcept {
  using F = PlainNumber<T>;
  const bool none = rows.end <= rows.begin || columns.end <= columns.begin;
  F most = none ? F(0) : static_cast<F>(T(static_cast<F>(-std::numeric_limits<float>::max())));
  at = -1;
  for (int64_t y = rows.begin; y < rows.end; ++y)
    for (int64_t x = columns.begin; x < columns.end; ++x)
      if (const F element = static_cast<F>(plane[y * width + x]); element > most) {
        most = element;
        at = static_cast<int32_t>(y * width + x);
      }
  value = T(most);
}

template <class T>
T average(const T* plane, int64_t width, const RegionWindow& rows, const RegionWindow& columns) noexcept {
  using N = RoundedNumber<T>;
  using F = PlainNumber<T>;
  if (rows.end <= rows.begin || columns.end <= columns.begin) return T(F(0));
  N sum(F(0));
  for (int64_t y = rows.begin; y < rows.end; ++y)
    for (int64_t x = columns.begin; x < columns.end; ++x) sum = sum + N(plane[y * width + x]);
  return static_cast<T>(sum / N(static_cast<F>((rows.end - rows.begin) * (columns.end - columns.begin))));
}

}  // namespace

std::array<Tensor, 2> roi_pool(const Tensor& input, const Tensor& rois, double spatial_scale, int64_t pooled_height,
                               int64_t pooled_width) {
  const RegionGeometry g = region_geometry("roi_pool", input, rois, spatial_scale, pooled_height, pooled_width, false);
  Tensor out = Tensor::empty(region_sizes(g), input.dtype()), places = Tensor::empty(region_sizes(g), DType::kInt32);
  if (out.numel() == 0) return {std::move(out), std::move(places)};
  const Tensor in = contiguous(input), boxes = contiguous(rois);
  dispatch_vision(input.dtype(), "roi_pool_forward_kernel", [&]<class T>() {
    const Tensor images = region_images<T>("roi_pool", g, boxes);
    const T* const regions = boxes.data_as<T>();
    const WindowLists<T> rows(g, regions, 2, g.pooled_height, true, g.height);
    const WindowLists<T> columns(g, regions, 1, g.pooled_width, true, g.width);
    const int64_t bins = g.pooled_height * g.pooled_width;
    for_planes(g.regions * g.channels, g.height * g.width, [&](int64_t index) noexcept {
      const int64_t region = index / g.channels, channel = index % g.channels;
      const int64_t from = images.data_as<int64_t>()[region] * g.channels + channel;
      const T* const plane = in.data_as<T>() + from * g.height * g.width;
      for (int64_t bin = 0, to = index * bins; bin < bins; ++bin, ++to)
        greatest(plane, g.width, rows.bin(region, bin / g.pooled_width), columns.bin(region, bin % g.pooled_width),
                 out.data_as<T>()[to], places.data_as<int32_t>()[to]);
    });
  });
  return {std::move(out), std::move(places)};
}

std::array<Tensor, 2> ps_roi_pool(const Tensor& input, const Tensor& rois, double spatial_scale, int64_t pooled_height,
                                  int64_t pooled_width) {
  const RegionGeometry g =
      region_geometry("ps_roi_pool", input, rois, spatial_scale, pooled_height, pooled_width, true);
  Tensor out = Tensor::empty(region_sizes(g), input.dtype()), mapping = channel_mapping(g);
  if (out.numel() == 0) return {std::move(out), std::move(mapping)};
  const Tensor in = contiguous(input), boxes = contiguous(rois);
  dispatch_vision(input.dtype(), "ps_roi_pool_forward_kernel", [&]<class T>() {
    const Tensor images = region_images<T>("ps_roi_pool", g, boxes);
    const T* const regions = boxes.data_as<T>();
    // torchvision leaves the last row and column of the image out.
    const WindowLists<T> rows(g, regions, 2, g.pooled_height, false, std::max<int64_t>(g.height - 1, 0));
    const WindowLists<T> columns(g, regions, 1, g.pooled_width, false, std::max<int64_t>(g.width - 1, 0));
    const int64_t bins = g.pooled_height * g.pooled_width;
    for_planes(g.regions * g.channels_out, g.height * g.width, [&](int64_t index) noexcept {
      const int64_t region = index / g.channels_out, channel = index % g.channels_out;
      for (int64_t bin = 0, to = index * bins; bin < bins; ++bin, ++to) {
        const int64_t from = images.data_as<int64_t>()[region] * g.channels + channel * bins + bin;
        out.data_as<T>()[to] =
            average(in.data_as<T>() + from * g.height * g.width, g.width, rows.bin(region, bin / g.pooled_width),
                    columns.bin(region, bin % g.pooled_width));
      }
    });
  });
  return {std::move(out), std::move(mapping)};
}

}  // namespace sconce::cpu
