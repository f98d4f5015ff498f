// roi_align and ps_roi_align. The points of each region's bins are the same for all channels: they are listed once,
// along each axis, before threads take regions and channels.
#include <algorithm>
#include <cmath>

#include "src/cpu/vision/region_images.h"
#include "src/cpu/vision/vision.h"
#include "src/cpu/vision/vision_dtypes.h"
#include "src/tensor/fill.h"
#include "src/tensor/rows/planes.h"

namespace sconce::cpu {
namespace {

template <class T>
struct ListedPoint {
  RegionPoint<T> place;
  int64_t times;
};
// The points of a bin in the list of an axis, and whether others lie outside of the image.
struct ListedBin {
  int64_t begin, end;
  bool outside;
};

// The points of all bins of all regions along one axis.
template <class T>
class PointLists {
 public:
  // corner: the column of rois where the axis begins; its end is two columns on.
  PointLists(const RegionGeometry& g, const T* rois, int corner, int64_t pooled, int64_t size)
      : pooled_(pooled), bins_(bytes(g.regions * pooled * static_cast<int64_t>(sizeof(ListedBin)))) {
    ListedBin* const bins = bins_.data_as<ListedBin>();
    const auto axis = [&](int64_t region) {
      const T* const roi = rois + 5 * region;
      return RegionAxis<T>(g, roi[corner], roi[corner + 2], pooled, size);
    };
    int64_t count = 0;
    for (int64_t region = 0; region < g.regions; ++region)
      for (int64_t bin = 0; bin < pooled; ++bin) {
        ListedBin& list = bins[region * pooled + bin];
        list.begin = count;
        list.outside = axis(region).visit_points(bin, [&](const RegionPoint<T>&, int64_t) { ++count; });
        list.end = count;
      }
    points_ = bytes(count * static_cast<int64_t>(sizeof(ListedPoint<T>)));
    auto* next = points_.data_as<ListedPoint<T>>();
    for (int64_t region = 0; region < g.regions; ++region)
      for (int64_t bin = 0; bin < pooled; ++bin)
        axis(region).visit_points(bin, [&](const RegionPoint<T>& place, int64_t times) { *next++ = {place, times}; });
  }
  const ListedBin& bin(int64_t region, int64_t bin) const noexcept {
    return bins_.data_as<ListedBin>()[region * pooled_ + bin];
  }
  const ListedPoint<T>* points() const noexcept { return points_.data_as<ListedPoint<T>>(); }

 private:
  static Tensor bytes(int64_t count) { return Tensor::empty(IntSpan(&count, 1), DType::kUInt8); }

  int64_t pooled_;
  Tensor bins_, points_;
};

// The sum of a bin's points in a plane.
template <class T>
RoundedNumber<T> sum_points(const T* plane, int64_t width, const ListedPoint<T>* rows, const ListedBin& row_bin,
                            const ListedPoint<T>* columns, const ListedBin& column_bin) noexcept {
  using N = RoundedNumber<T>;
  N sum(PlainNumber<T>(0));
  for (int64_t y = row_bin.begin; y < row_bin.end; ++y) {
    const RegionPoint<T>& row = rows[y].place;
    const T *const low = plane + row.low * width, *const high = plane + row.high * width;
    for (int64_t x = column_bin.begin; x < column_bin.end; ++x) {
      const RegionPoint<T>& column = columns[x].place;
      const N value = row.low_weight * column.low_weight * N(low[column.low]) +
                      row.low_weight * column.high_weight * N(low[column.high]) +
                      row.high_weight * column.low_weight * N(high[column.low]) +
                      row.high_weight * column.high_weight * N(high[column.high]);
      sum = sum + region_repeated(value, rows[y].times * columns[x].times);
    }
  }
  return sum;
}

// How many points a bin has along an axis.
template <class T>
int64_t points_of(const RegionGeometry& g, const T* roi, int corner, int64_t pooled, int64_t size) noexcept {
  return RegionAxis<T>(g, roi[corner], roi[corner + 2], pooled, size).count;
}

// Calls body(region, image, channel of the results, count) for all planes of results; count: points of a bin, of both
// axes.
template <class T, class F>
void for_region_planes(const RegionGeometry& g, const T* rois, const int64_t* images, int64_t work, const F& body) {
  for_planes(g.regions * g.channels_out, work, [&](int64_t index) noexcept {
    const int64_t region = index / g.channels_out, channel = index % g.channels_out;
    const T* const roi = rois + 5 * region;
    body(region, images[region], channel,
         points_of(g, roi, 2, g.pooled_height, g.height) * points_of(g, roi, 1, g.pooled_width, g.width));
  });
}

}  // namespace

Tensor roi_align(const Tensor& input, const Tensor& rois, double spatial_scale, int64_t pooled_height,
                 int64_t pooled_width, int64_t sampling_ratio, bool aligned) {
  RegionGeometry g = region_geometry("roi_align", input, rois, spatial_scale, pooled_height, pooled_width, false);
  g.sampling_ratio = sampling_ratio;
  g.aligned = aligned;
  Tensor out = Tensor::empty(region_sizes(g), input.dtype());
  if (out.numel() == 0) return out;
  if (input.numel() == 0) {
    zero(out);
    return out;
  }
  const Tensor in = contiguous(input), boxes = contiguous(rois);
  dispatch_vision(input.dtype(), "roi_align_forward_kernel", [&]<class T>() {
    using N = RoundedNumber<T>;
    using F = PlainNumber<T>;
    const Tensor images = region_images<T>("roi_align", g, boxes);
    const T* const regions = boxes.data_as<T>();
    const PointLists<T> rows(g, regions, 2, g.pooled_height, g.height), columns(g, regions, 1, g.pooled_width, g.width);
    const int64_t bins = g.pooled_height * g.pooled_width;
    for_region_planes(g, regions, images.data_as<int64_t>(), bins * 32,
                      [&](int64_t region, int64_t image, int64_t channel, int64_t points) noexcept {
                        const T* const plane = in.data_as<T>() + (image * g.channels + channel) * g.height * g.width;
                        T* to = out.data_as<T>() + (region * g.channels + channel) * bins;
                        const N count(static_cast<F>(std::max<int64_t>(points, 1)));
                        // torchvision multiplies the first element by 0 for each point outside of the image.
                        const bool spreads = !std::isfinite(static_cast<F>(plane[0]));
                        for (int64_t ph = 0; ph < g.pooled_height; ++ph)
                          for (int64_t pw = 0; pw < g.pooled_width; ++pw) {
                            const ListedBin &row = rows.bin(region, ph), &column = columns.bin(region, pw);
                            N sum = sum_points(plane, g.width, rows.points(), row, columns.points(), column);
                            if (spreads && points > 0 && (row.outside || column.outside))
                              sum = sum + N(F(0)) * N(plane[0]);
                            *to++ = static_cast<T>(sum / count);
                          }
                      });
  });
  return out;
}

std::array<Tensor, 2> ps_roi_align(const Tensor& input, const Tensor& rois, double spatial_scale, int64_t pooled_height,
                                   int64_t pooled_width, int64_t sampling_ratio) {
  RegionGeometry g = region_geometry("ps_roi_align", input, rois, spatial_scale, pooled_height, pooled_width, true);
  g.sampling_ratio = sampling_ratio;
  Tensor out = Tensor::empty(region_sizes(g), input.dtype());
  Tensor mapping = channel_mapping(g);
  if (out.numel() == 0) return {std::move(out), std::move(mapping)};
  const Tensor in = contiguous(input), boxes = contiguous(rois);
  dispatch_vision(input.dtype(), "ps_roi_align_forward_kernel", [&]<class T>() {
    using N = RoundedNumber<T>;
    using F = PlainNumber<T>;
    const Tensor images = region_images<T>("ps_roi_align", g, boxes);
    const T* const regions = boxes.data_as<T>();
    const PointLists<T> rows(g, regions, 2, g.pooled_height, g.height), columns(g, regions, 1, g.pooled_width, g.width);
    const int64_t bins = g.pooled_height * g.pooled_width;
    for_region_planes(g, regions, images.data_as<int64_t>(), bins * 32,
                      [&](int64_t region, int64_t image, int64_t channel, int64_t points) noexcept {
                        T* to = out.data_as<T>() + (region * g.channels_out + channel) * bins;
                        const N count(static_cast<F>(points));
                        for (int64_t bin = 0; bin < bins; ++bin) {
                          const int64_t from = image * g.channels + channel * bins + bin;
                          const T* const plane = in.data_as<T>() + from * g.height * g.width;
                          const N sum =
                              sum_points(plane, g.width, rows.points(), rows.bin(region, bin / g.pooled_width),
                                         columns.points(), columns.bin(region, bin % g.pooled_width));
                          *to++ = static_cast<T>(sum / count);
                        }
                      });
  });
  return {std::move(out), std::move(mapping)};
}

}  // namespace sconce::cpu
