// Non-maximum suppression. Boxes are put in the order of their scores, so that the inner loop reads neighbours and
// vectorises.
#include <algorithm>
#include <cmath>
#include <limits>

#include "src/cpu/vision/vision.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/rules/boxes.h"

namespace sconce::cpu {
namespace {

// The largest T that is not above the threshold: a T exceeds one exactly if it exceeds the other.
template <class T>
T rounded_down(double threshold) noexcept {
  const T near = static_cast<T>(threshold);
  return static_cast<double>(near) > threshold ? std::nextafter(near, -std::numeric_limits<T>::infinity()) : near;
}

template <class T>
struct BoxColumns {
  T *x1, *y1, *x2, *y2, *area;
};

// Marks the boxes from `i + 1` to `n` that box i suppresses. As std::max and std::min of torchvision, NaN included.
template <class T, class Mark>
void suppress(const BoxColumns<T>& boxes, int64_t i, int64_t n, T threshold, Mark* suppressed) noexcept {
  const T x1 = boxes.x1[i], y1 = boxes.y1[i], x2 = boxes.x2[i], y2 = boxes.y2[i], area = boxes.area[i];
  for (int64_t j = i + 1; j < n; ++j) {
    const T left = x1 < boxes.x1[j] ? boxes.x1[j] : x1, top = y1 < boxes.y1[j] ? boxes.y1[j] : y1;
    const T right = boxes.x2[j] < x2 ? boxes.x2[j] : x2, bottom = boxes.y2[j] < y2 ? boxes.y2[j] : y2;
    const T width = right - left, height = bottom - top;
    const T common = (T(0) < width ? width : T(0)) * (T(0) < height ? height : T(0));
    suppressed[j] |= common / (area + boxes.area[j] - common) > threshold ? Mark(-1) : Mark(0);
  }
}

template <class T>
int64_t kept_boxes(const Tensor& dets, const int64_t* order, double iou_threshold, int64_t* kept) {
  using Mark = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;  // as wide as an element: vectors of both
  const int64_t n = dets.size(0), columns[] = {5, n};
  Tensor memory = Tensor::empty(columns, dets.dtype()), marks = Tensor::empty(IntSpan(&n, 1), kDType<Mark>);
  T* const base = memory.data_as<T>();
  const BoxColumns<T> boxes{base, base + n, base + 2 * n, base + 3 * n, base + 4 * n};
  const T* const in = dets.data_as<T>();
  const int64_t row = dets.stride(0), step = dets.stride(1);
  for (int64_t i = 0; i < n; ++i) {
    const T* const box = in + order[i] * row;
    boxes.x1[i] = box[0];
    boxes.y1[i] = box[step];
    boxes.x2[i] = box[2 * step];
    boxes.y2[i] = box[3 * step];
    boxes.area[i] = (boxes.x2[i] - boxes.x1[i]) * (boxes.y2[i] - boxes.y1[i]);
  }
  Mark* const suppressed = marks.data_as<Mark>();
  std::fill_n(suppressed, n, Mark(0));
  const T threshold = rounded_down<T>(iou_threshold);
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (suppressed[i]) continue;
    kept[count++] = order[i];
    suppress(boxes, i, n, threshold, suppressed);
  }
  return count;
}

}  // namespace

Tensor nms(const Tensor& dets, const Tensor& scores, double iou_threshold) {
  check_boxes("nms", dets, scores);
  const int64_t n = dets.size(0);
  Tensor kept = Tensor::empty(IntSpan(&n, 1), DType::kInt64);
  const int64_t count = dispatch_float_double(dets.dtype(), "nms_kernel", [&]<class T>() -> int64_t {
    SCONCE_CHECK(scores.dtype() == dets.dtype(), kInvalidArgument,
                 "nms: dets should have the same type as scores, got ", dtype_name(dets.dtype()), " and ",
                 dtype_name(scores.dtype()));
    if (n == 0) return 0;
    const Tensor order = sort_stable(scores, true, 0, true)[1];
    return kept_boxes<T>(dets, order.data_as<int64_t>(), iou_threshold, kept.data_as<int64_t>());
  });
  const int64_t one = 1;
  return kept.as_strided(IntSpan(&count, 1), IntSpan(&one, 1), 0);
}

}  // namespace sconce::cpu
