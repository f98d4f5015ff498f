// Reductions of segments. Match aten::segment_reduce and _segment_reduce_backward (torch 2.15, CUDA); half types
// compute in float32. A run whose lengths or offsets do not fit the data fails when it waits for the stream.
#include "src/cpu/reduction/segment_reduce.h"

#include "src/cuda/reduction/segment_reduce_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

SegmentKind kind_of(std::string_view reduce) {
  switch (cpu::segment_reduction(reduce)) {
    case cpu::SegmentReduction::kMax:
      return SegmentKind::kMax;
    case cpu::SegmentReduction::kMean:
      return SegmentKind::kMean;
    case cpu::SegmentReduction::kMin:
      return SegmentKind::kMin;
    case cpu::SegmentReduction::kSum:
      return SegmentKind::kSum;
    default:
      return SegmentKind::kProduct;
  }
}

// [outer, count + 1] int64.
Tensor bounds_of(const cpu::SegmentShape& shape, const Tensor* lengths, const Tensor* offsets) {
  const Tensor given = contiguous(converted(lengths ? *lengths : *offsets, DType::kInt64));
  if (!lengths) return given;
  const int64_t sizes[] = {shape.outer, shape.count + 1}, rows[] = {shape.outer, shape.count},
                strides[] = {shape.count, 1};
  Tensor bounds = Tensor::empty(sizes, DType::kInt64, given.device());
  const Tensor sums =
      shape.count > 0 ? cumsum(given.as_strided(rows, strides, given.storage_offset()), 1, std::nullopt) : given;
  launch_segment_bounds(sums.data_as<int64_t>(), shape.outer, shape.count, bounds.data_as<int64_t>(), current_stream());
  SCONCE_CUDA(cudaGetLastError());
  return bounds;
}

SegmentCall call_of(std::string_view reduce, const cpu::SegmentShape& shape, const Tensor& data, const Tensor& bounds,
                    std::optional<double> initial) {
  return {kind_of(reduce),     static_cast<int>(data.dtype()),
          shape.outer,         shape.count,
          shape.size,          shape.inner,
          data.data(),         bounds.data_as<int64_t>(),
          initial.has_value(), initial.value_or(0),
          noted_by_kernels(),  static_cast<int>(Noted::kIndex)};
}

}  // namespace

Tensor segment_reduce(const Tensor& data, std::string_view reduce, const Tensor* lengths, const Tensor* indices,
                      const Tensor* offsets, int64_t axis, bool unsafe, std::optional<double> initial) {
  cpu::check_segment_reduce(data, lengths, indices, unsafe);
  const cpu::SegmentShape shape = cpu::segment_shape(data, lengths, offsets, axis);
  const DeviceScope scope(data.device());
  Shape sizes(data.sizes());
  sizes[static_cast<int>(wrap_dim("segment_reduce", axis, data.dim()))] = shape.count;
  Tensor out = Tensor::empty(sizes, data.dtype(), data.device());
  const Tensor packed = contiguous(data), bounds = bounds_of(shape, lengths, offsets);
  check_launch("segment_reduce",
               launch_segments(call_of(reduce, shape, packed, bounds, initial), out.data(), current_stream()),
               data.dtype());
  check_noted();
  return out;
}

Tensor _segment_reduce_backward(const Tensor& grad, const Tensor& output, const Tensor& data, std::string_view reduce,
                                const Tensor* lengths, const Tensor* offsets, int64_t axis,
                                std::optional<double> initial) {
  SCONCE_CHECK(data.dim() > 0, kInvalidArgument, "_segment_reduce_backward(): data must have a dimension");
  const cpu::SegmentShape shape = cpu::segment_shape(data, lengths, offsets, axis);
  for (const Tensor* t : {&grad, &output})
    SCONCE_CHECK(t->dtype() == data.dtype() && t->numel() == shape.outer * shape.count * shape.inner, kInvalidArgument,
                 "_segment_reduce_backward(): ", describe(*t), " is no reduction of ", describe(data));
  const DeviceScope scope(data.device());
  Tensor out = zeros(data.sizes(), data.dtype(), data.device());
  const Tensor packed = contiguous(data), grads = contiguous(grad), results = contiguous(output),
               bounds = bounds_of(shape, lengths, offsets);
  check_launch("segment_reduce",
               launch_segment_slopes(call_of(reduce, shape, packed, bounds, initial), grads.data(), results.data(),
                                     out.data(), current_stream()),
               data.dtype());
  check_noted();
  return out;
}

}  // namespace sconce::cuda
