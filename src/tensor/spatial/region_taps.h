// The elements of an image that contribute to the bins of a region, for roi_align, ps_roi_align, roi_pool and
// ps_roi_pool. For host and device code. T: an element type; arithmetic rounds to it after each operation, as in
// torchvision.
#pragma once

#include <cmath>
#include <cstdint>

#include "src/tensor/elements/rounded.h"

namespace sconce {

// A call's sizes and arguments. input [batch, channels, height, width], rois [regions, 5]: image, x1, y1, x2, y2;
// results [regions, channels_out, pooled_height, pooled_width].
struct RegionGeometry {
  int64_t regions, batch, channels, channels_out, height, width, pooled_height, pooled_width;
  double scale;
  int64_t sampling_ratio = 0;  // roi_align: points along each side of a bin; 0 or less: as many as the bin has elements
  bool aligned = true;         // roi_align: elements lie half an element from the corner of the image
  // roi_align: regions have at least one element along each side.
  SCONCE_HOST_DEVICE bool widened() const noexcept { return !aligned; }
};

// Converts a float to a whole number: 0 for NaN; numbers beyond int32 become its bounds.
template <class F>
SCONCE_HOST_DEVICE int64_t region_whole(F value) noexcept {
  constexpr F kMost = F(2147483647);
  if (value != value) return 0;
  return value >= kMost ? 2147483647 : value <= -kMost ? -2147483647 : static_cast<int64_t>(value);
}

// The elements on both sides of a point along an axis, with their weights.
template <class T>
struct RegionPoint {
  int64_t low, high;
  RoundedNumber<T> low_weight, high_weight;
};

inline constexpr int64_t kManyPoints = 4096;

// The points of a region's bins along one axis.
template <class T>
struct RegionAxis {
  using N = RoundedNumber<T>;
  using F = PlainNumber<T>;

  N start, bin;   // in elements of the image
  int64_t count;  // points per bin; 0 or less: none
  int64_t size;   // of the image

  SCONCE_HOST_DEVICE RegionAxis(const RegionGeometry& g, T first, T last, int64_t pooled, int64_t image) noexcept
      : size(image) {
    const N scale(static_cast<F>(g.scale)), offset(g.aligned ? F(0.5) : F(0));
    start = N(first) * scale - offset;
    N length = N(last) * scale - offset - start;
#ifdef __CUDA_ARCH__
    const bool narrow = !(static_cast<F>(length) >= F(1));  // CUDA's max() drops NaN, C++'s keeps it
#else
    const bool narrow = static_cast<F>(length) < F(1);
#endif
    if (g.widened() && narrow) length = N(F(1));
    bin = length / N(static_cast<F>(pooled));
    count = g.sampling_ratio > 0 ? g.sampling_ratio : region_whole(std::ceil(static_cast<F>(bin)));
  }

  SCONCE_HOST_DEVICE F point(int64_t of_bin, int64_t i) const noexcept {
    const N within(static_cast<F>(static_cast<float>(i) + 0.5f));
    return static_cast<F>(start + N(static_cast<F>(of_bin)) * bin + within * bin / N(static_cast<F>(count)));
  }
  SCONCE_HOST_DEVICE bool inside(F at) const noexcept { return size > 0 && at >= F(-1) && at <= static_cast<F>(size); }
  // A point inside the image.
  SCONCE_HOST_DEVICE RegionPoint<T> between(F at) const noexcept {
    N place(at <= 0 ? F(0) : at);
    int64_t low = static_cast<int64_t>(static_cast<F>(place)), high = low + 1;
    if (low >= size - 1) {
      high = low = size - 1;
      place = N(static_cast<F>(low));
    }
    const N upper = place - N(static_cast<F>(low));
    return {low, high, N(F(1)) - upper, upper};
  }
  // The first point of a bin from `begin` to `end` for which `after` holds; it holds for all later ones.
  template <class P>
  SCONCE_HOST_DEVICE int64_t first_point(int64_t of_bin, int64_t begin, int64_t end, P after) const noexcept {
    while (begin < end) {
      const int64_t middle = begin + (end - begin) / 2;
      if (after(point(of_bin, middle)))
        end = middle;
      else
        begin = middle + 1;
    }
    return begin;
  }

  // Calls visit(point, times) for the bin's points in the image, in order. Returns whether other points lie outside. A
  // bin may have billions of points. From kManyPoints on, points outside are skipped, and points that rounding makes
  // equal are visited once, so that the work does not exceed the image's size.
  template <class V>
  SCONCE_HOST_DEVICE bool visit_points(int64_t of_bin, V visit) const noexcept {
    const bool many = count >= kManyPoints && count > 4 * (size + 2) && static_cast<F>(bin) > 0;
    int64_t i = 0, end = count;
    if (many) {
      end = first_point(of_bin, 0, count, [&](F at) { return at > static_cast<F>(size); });
      i = first_point(of_bin, 0, end, [](F at) { return at >= F(-1); });
    }
    bool outside = count > 0 && (i > 0 || end < count);
    while (i < end) {
      const F at = point(of_bin, i);
      const int64_t next = many ? first_point(of_bin, i + 1, end, [at](F later) { return later > at; }) : i + 1;
      if (inside(at))
        visit(between(at), next - i);
      else
        outside = true;
      i = next;
    }
    return outside;
  }
};

// The contribution of `times` equal values to a sum.
template <class N>
SCONCE_HOST_DEVICE N region_repeated(N value, int64_t times) noexcept {
  using F = PlainNumber<N>;
  return times == 1 ? value : value * N(static_cast<F>(times));
}

// The elements [begin, end) of the image that a bin of roi_pool or ps_roi_pool covers along one axis.
struct RegionWindow {
  int64_t begin, end;
};
// closed: the region includes the element at its end. limit: for the window's bounds.
template <class T>
SCONCE_HOST_DEVICE RegionWindow region_window(double scale, T first, T last, int64_t pooled, bool closed, int64_t limit,
                                              int64_t of_bin) noexcept {
  using N = RoundedNumber<T>;
  using F = PlainNumber<T>;
  const N by(static_cast<F>(scale));
  const int64_t from = region_whole(std::round(static_cast<F>(N(first) * by)));
  const int64_t to = region_whole(std::round(static_cast<F>(N(last) * by)));
  const int64_t wide = to - from + (closed ? 1 : 0), length = wide > 1 ? wide : 1;
  const N bin = N(static_cast<F>(length)) / N(static_cast<F>(pooled));
  const auto clamped = [limit](int64_t at) { return at < 0 ? 0 : at > limit ? limit : at; };
  return {clamped(region_whole(std::floor(static_cast<F>(N(static_cast<F>(of_bin)) * bin))) + from),
          clamped(region_whole(std::ceil(static_cast<F>(N(static_cast<F>(of_bin + 1)) * bin))) + from)};
}

// The image of a region; -1 if the batch has no such image.
template <class T>
SCONCE_HOST_DEVICE int64_t region_image(T number, int64_t batch) noexcept {
  using F = PlainNumber<T>;
  const F at = static_cast<F>(number);
  return at > F(-1) && at < static_cast<F>(batch) ? static_cast<int64_t>(at) : -1;
}

}  // namespace sconce
