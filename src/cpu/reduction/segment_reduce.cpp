// Reductions of consecutive segments. Match aten::segment_reduce and _segment_reduce_backward (torch 2.15, CPU).
//
// data [L..., N, inner...]; segments of dimension `axis` = dimensions of L, by lengths [L..., S] or offsets [L..., S +
// 1] (int32 or int64). Result [L..., S, inner...], row-major. Floating dtypes, combined in sequence in the dtype
// itself, as ATen does. reduce: sum, mean, min, max, prod. Lengths must lie inside of data whatever `unsafe` says: ATen
// would read out of bounds. kInvalidArgument.
#include <algorithm>
#include <limits>

#include "sconce/check.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/fill.h"
#include "src/tensor/rules/segments.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

// Segments of every outer row: where each begins, count + 1 positions a row, int64.
struct Segments : SegmentShape {
  Tensor bounds;  // [outer, count + 1]
  const int64_t* row(int64_t o) const noexcept { return bounds.data_as<int64_t>() + o * (count + 1); }
};

Segments read_segments(const Tensor& data, const Tensor* lengths, const Tensor* offsets, int64_t axis) {
  Segments segments{segment_shape(data, lengths, offsets, axis), {}};
  const Tensor& given = lengths ? *lengths : *offsets;
  const int64_t columns = lengths ? segments.count : segments.count + 1;
  const int64_t sizes[] = {segments.outer, segments.count + 1};
  segments.bounds = Tensor::empty(sizes, DType::kInt64);
  const Tensor packed = contiguous(to_dtype(given, DType::kInt64));
  for (int64_t o = 0; o < segments.outer; ++o) {
    const int64_t* in = packed.data_as<int64_t>() + o * columns;
    int64_t* bound = segments.bounds.data_as<int64_t>() + o * (segments.count + 1);
    if (!lengths) {
      std::copy_n(in, columns, bound);
    } else {
      bound[0] = 0;
      for (int64_t s = 0; s < segments.count; ++s) {
        SCONCE_CHECK(
            in[s] >= 0 && in[s] <= segments.size - bound[s], kInvalidArgument,
            "segment_reduce(): Expected all lengths along the axis to be positive and their sum to be at most ",
            segments.size, ", got length ", in[s]);
        bound[s + 1] = bound[s] + in[s];
      }
    }
    for (int64_t s = 0; s <= segments.count; ++s)
      SCONCE_CHECK(bound[s] >= (s ? bound[s - 1] : 0) && bound[s] <= segments.size, kInvalidArgument,
                   "segment_reduce(): Expected offsets to ascend from 0 to at most ", segments.size, ", got ",
                   bound[s]);
  }
  return segments;
}

template <class T>
bool is_nan(T value) noexcept {
  return value != value;
}

template <class T>
T start_of(SegmentReduction reduction, std::optional<double> initial) noexcept {
  using C = ComputeType<T>;
  if (initial) return T(static_cast<C>(*initial));
  if (reduction == SegmentReduction::kMax) return T(-std::numeric_limits<C>::infinity());
  if (reduction == SegmentReduction::kMin) return T(std::numeric_limits<C>::infinity());
  return T(static_cast<C>(reduction == SegmentReduction::kProd));
}

template <class T>
T join(SegmentReduction reduction, T so_far, T value) noexcept {
  switch (reduction) {
    case SegmentReduction::kMax:
      return is_nan(value) || so_far < value ? value : so_far;
    case SegmentReduction::kMin:
      return is_nan(value) || value < so_far ? value : so_far;
    case SegmentReduction::kProd:
      return T(so_far * value);
    default:
      return T(so_far + value);
  }
}

// `from` and `to` are `inner` apart from element to element.
template <class T>
T reduce_one(SegmentReduction reduction, const T* from, int64_t length, int64_t inner, T start,
             bool has_initial) noexcept {
  using C = ComputeType<T>;
  T value = start;
  for (int64_t i = 0; i < length; ++i) value = join(reduction, value, from[i * inner]);
  if (reduction != SegmentReduction::kMean) return value;
  if (length == 0) return has_initial ? value : T(std::numeric_limits<C>::quiet_NaN());
  return is_nan(value) ? value : T(value / T(static_cast<C>(length)));
}

template <class T>
void slope_one(SegmentReduction reduction, const T* data, int64_t length, int64_t inner, T output, T grad, T start,
               T* to) noexcept {
  using C = ComputeType<T>;
  switch (reduction) {
    case SegmentReduction::kSum:
      for (int64_t i = 0; i < length; ++i) to[i * inner] = grad;
      return;
    case SegmentReduction::kMean:
      for (int64_t i = 0; i < length; ++i) to[i * inner] = T(grad / T(static_cast<C>(length)));
      return;
    case SegmentReduction::kMax:
    case SegmentReduction::kMin: {
      const auto chosen = [&](int64_t i) { return is_nan(data[i * inner]) || data[i * inner] == output; };
      int64_t count = 0;
      for (int64_t i = 0; i < length; ++i)
        if (chosen(i)) {
          to[i * inner] = grad;
          ++count;
        }
      // ATen shares a gradient among equal extrema only if it is positive. There is no reason for that, but results
      // must match.
      for (int64_t i = 0; count > 1 && i < length; ++i)
        if (to[i * inner] > T(C(0))) to[i * inner] = T(to[i * inner] / T(static_cast<C>(count)));
      return;
    }
    case SegmentReduction::kProd:
      for (int64_t i = 0; i < length; ++i) {
        const T value = data[i * inner];
        if (!is_nan(value) && value != T(C(0))) {
          to[i * inner] = T(T(grad * output) / value);
          continue;
        }
        T others = start;
        for (int64_t k = 0; k < length; ++k)
          if (k != i) others = T(others * data[k * inner]);
        to[i * inner] = T(grad * others);
      }
  }
}

}  // namespace

// initial: where a segment starts, and all of an empty one; without it 0 (NaN for an empty mean), 1 or an infinity.
Tensor segment_reduce(const Tensor& data, std::string_view reduce, const Tensor* lengths, const Tensor* indices,
                      const Tensor* offsets, int64_t axis, bool unsafe, std::optional<double> initial) {
  check_segment_reduce(data, lengths, indices, unsafe);
  const SegmentReduction reduction = segment_reduction(reduce);
  const Segments segments = read_segments(data, lengths, offsets, axis);
  Shape sizes(data.sizes());
  sizes[static_cast<int>(wrap_dim("segment_reduce", axis, data.dim()))] = segments.count;
  Tensor out = Tensor::empty(sizes, data.dtype());
  const Tensor packed = contiguous(data);
  dispatch_floating(data.dtype(), "segment_reduce", [&]<class T>() {
    const T start = start_of<T>(reduction, initial);
    T* to = out.data_as<T>();
    for (int64_t o = 0; o < segments.outer; ++o)
      for (int64_t s = 0; s < segments.count; ++s, to += segments.inner) {
        const int64_t *bound = segments.row(o) + s, length = bound[1] - bound[0];
        const T* from = packed.data_as<T>() + (o * segments.size + bound[0]) * segments.inner;
        for (int64_t i = 0; i < segments.inner; ++i)
          to[i] = reduce_one(reduction, from + i, length, segments.inner, start, initial.has_value());
      }
  });
  return out;
}

// Equal extrema share the gradient.
Tensor _segment_reduce_backward(const Tensor& grad, const Tensor& output, const Tensor& data, std::string_view reduce,
                                const Tensor* lengths, const Tensor* offsets, int64_t axis,
                                std::optional<double> initial) {
  const SegmentReduction reduction = segment_reduction(reduce);
  SCONCE_CHECK(data.dim() > 0, kInvalidArgument, "_segment_reduce_backward(): data must have a dimension");
  const Segments segments = read_segments(data, lengths, offsets, axis);
  for (const Tensor* t : {&grad, &output})
    SCONCE_CHECK(t->dtype() == data.dtype() && t->numel() == segments.outer * segments.count * segments.inner,
                 kInvalidArgument, "_segment_reduce_backward(): ", describe(*t), " is no reduction of ",
                 describe(data));
  Tensor out = Tensor::empty(data.sizes(), data.dtype());
  zero(out);
  const Tensor packed = contiguous(data), grads = contiguous(grad), outputs = contiguous(output);
  dispatch_floating(data.dtype(), "segment_reduce", [&]<class T>() {
    const T start = start_of<T>(reduction, initial);
    for (int64_t o = 0; o < segments.outer; ++o)
      for (int64_t s = 0; s < segments.count; ++s) {
        const int64_t *bound = segments.row(o) + s, length = bound[1] - bound[0];
        const int64_t at = (o * segments.size + bound[0]) * segments.inner;
        const int64_t result = (o * segments.count + s) * segments.inner;
        for (int64_t i = 0; i < segments.inner; ++i)
          slope_one(reduction, packed.data_as<T>() + at + i, length, segments.inner, outputs.data_as<T>()[result + i],
                    grads.data_as<T>()[result + i], start, out.data_as<T>() + at + i);
      }
  });
  return out;
}

}  // namespace sconce::cpu
