#include "src/tensor/rules/segments.h"

#include "sconce/check.h"
#include "src/tensor/strided_loop.h"

namespace sconce {

SegmentReduction segment_reduction(std::string_view name) {
  if (name == "max") return SegmentReduction::kMax;
  if (name == "mean") return SegmentReduction::kMean;
  if (name == "min") return SegmentReduction::kMin;
  if (name == "sum") return SegmentReduction::kSum;
  if (name == "prod") return SegmentReduction::kProd;
  SCONCE_FAIL(kInvalidArgument, "segment_reduce: unsupported reduction given! ", name);
}

SegmentShape segment_shape(const Tensor& data, const Tensor* lengths, const Tensor* offsets, int64_t axis) {
  SCONCE_CHECK(lengths || offsets, kInvalidArgument, "segment_reduce(): Either lengths or offsets must be defined.");
  const Tensor& given = lengths ? *lengths : *offsets;
  SCONCE_CHECK(given.dtype() == DType::kInt32 || given.dtype() == DType::kInt64, kInvalidArgument,
               "segment_reduce(): lengths and offsets must be int32 or int64, got ", dtype_name(given.dtype()));
  axis = wrap_dim("segment_reduce", axis, data.dim());
  SCONCE_CHECK(given.dim() == axis + 1 && given.dim() <= data.dim(), kInvalidArgument,
               "segment_reduce(): Expected axis to be the last dimension of lengths or offsets but got ", axis, " for ",
               describe(given));
  SegmentShape segments;
  for (int64_t d = 0; d < axis; ++d) {
    SCONCE_CHECK(given.size(d) == data.size(d), kInvalidArgument, "segment_reduce(): ", describe(given),
                 " does not fit data ", describe(data));
    segments.outer *= data.size(d);
  }
  for (int64_t d = axis + 1; d < data.dim(); ++d) segments.inner *= data.size(d);
  segments.size = data.size(axis);
  const int64_t columns = given.size(axis);
  SCONCE_CHECK(lengths || columns > 0, kInvalidArgument, "segment_reduce(): offsets must not be empty");
  segments.count = lengths ? columns : columns - 1;
  return segments;
}

void check_segment_reduce(const Tensor& data, const Tensor* lengths, const Tensor* indices, bool unsafe) {
  SCONCE_CHECK(data.dim() > 0, kInvalidArgument, "segment_reduce(): data must have dimensions, got ", describe(data));
  // ATen searches for the smallest length.
  SCONCE_CHECK(unsafe || !lengths || lengths->numel() > 0, kInvalidArgument,
               "segment_reduce(): lengths must not be empty");
  SCONCE_CHECK(!indices, kUnsupported, "segment_reduce(): indices based reduction is not supported yet.");
}

}  // namespace sconce
